// server THREADS REQUESTS: answers REQUESTS requests on THREADS threads, like a server: each is
// parsed into a map of fields, looked up in a shared store, and answered with a new string.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Fields = std::map<std::string, std::string>;

class Store {
 public:
  // Keeps the value under the key and returns the one before it.
  std::string exchange(const std::string& key, std::string value) {
    const std::lock_guard lock(mutex_);
    std::string& kept = values_[key];
    kept.swap(value);
    return value;
  }

 private:
  std::mutex mutex_;
  Fields values_;
};

std::string request(std::uint64_t number) {
  std::ostringstream text;
  text << "method=put&user=customer-number-" << number % 1000 << "&item=a-thing-with-a-long-name-"
       << number % 77 << "&comment=" << std::string(number % 200, 'x');
  return text.str();
}

Fields parse(const std::string& text) {
  Fields fields;
  std::istringstream in(text);
  for (std::string field; std::getline(in, field, '&');) {
    const std::size_t equals = field.find('=');
    fields[field.substr(0, equals)] = field.substr(equals + 1);
  }
  return fields;
}

std::string answer(Store& store, std::uint64_t number) {
  const Fields fields = parse(request(number));
  const std::string before =
      store.exchange(fields.at("user") + fields.at("item"), fields.at("comment"));
  return "status=ok&before=" + before + "&user=" + fields.at("user");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::uint64_t threads = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t requests = std::strtoull(argv[2], nullptr, 10);
  Store store;
  std::vector<std::thread> running;
  for (std::uint64_t i = 0; i < threads; ++i) {
    running.emplace_back([&store, i, threads, requests] {
      std::size_t sent = 0;
      for (std::uint64_t j = i; j < requests; j += threads) sent += answer(store, j).size();
      if (sent == 0) std::abort();
    });
  }
  for (std::thread& thread : running) thread.join();
}
