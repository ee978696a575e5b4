// A server with a thread pool: server connections|cache|journal|subscribers.
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

using namespace std::chrono_literals;

namespace net {

class Connection {
 public:
  explicit Connection(int number) : number_(number) { receive(); }

 private:
  __attribute__((noinline)) void receive() { buffer_.resize(180'000, static_cast<char>(number_)); }

  int number_;
  std::vector<char> buffer_;
};

class Listener {
 public:
  __attribute__((noinline)) void accept(int number) {
    open_.push_back(std::make_shared<Connection>(number));
  }

 private:
  std::deque<std::shared_ptr<Connection>> open_;
};

}  // namespace net

template <class Key, class Value>
class Cache {
 public:
  template <class Make>
  const Value& get(const Key& key, Make make) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    return values_.emplace(key, make()).first->second;
  }

 private:
  std::unordered_map<Key, Value> values_;
};

namespace {

net::Listener g_listener;
Cache<std::string, std::string> g_cache;
std::map<int, std::string> g_journal;
std::vector<std::function<int()>> g_subscribers;

__attribute__((noinline)) std::string render(int number) {
  return std::string(170'000, static_cast<char>('a' + number % 26));
}

__attribute__((noinline)) void answer(int number) {
  g_cache.get("/page/" + std::to_string(number), [&] { return render(number); });
}

__attribute__((noinline)) void write_journal(int number) {
  std::string line;
  while (line.size() < 130'000) line += "entry " + std::to_string(number) + ";";
  g_journal[number] = line;
}

__attribute__((noinline)) void subscribe(int number) {
  std::vector<int> filter(40'000, number);
  g_subscribers.emplace_back([filter] { return filter[0]; });
}

// The bystander.
__attribute__((noinline)) std::size_t checksum(int number) {
  const std::vector<long> sums(300'000, number);
  asm volatile("" : : "r"(sums.data()) : "memory");
  return sums.size();
}

void handle(const std::string& cause, int number) {
  if (cause == "connections") g_listener.accept(number);
  if (cause == "cache") answer(number);
  if (cause == "journal") write_journal(number);
  if (cause == "subscribers") subscribe(number);
  checksum(number);
}

class Pool {
 public:
  template <class Work>
  explicit Pool(Work work) {
    for (int i = 0; i < 2; ++i)
      threads_.emplace_back([this, work] {
        for (;;) {
          int number = 0;
          {
            const std::lock_guard lock{mutex_};
            number = next_++;
            work(number);
          }
          std::this_thread::sleep_for(15ms);
        }
      });
  }
  ~Pool() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::mutex mutex_;
  int next_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

int main(int, char** words) {
  const std::string cause = words[1];
  Pool pool{[cause](int number) { handle(cause, number); }};
  return 0;
}
