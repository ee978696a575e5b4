// The plugin of host.cpp.
#include <list>
#include <memory>
#include <set>
#include <string>

namespace {

struct Hit {
  std::string text;
  std::weak_ptr<Hit> before;
};

class Scanner {
 public:
  static Scanner& instance() {
    static Scanner scanner;
    return scanner;
  }
  __attribute__((noinline)) void scan(int number) {
    auto hit = std::make_shared<Hit>();
    hit->text.assign(190'000, static_cast<char>(number));
    if (!hits_.empty()) hit->before = hits_.back();
    hits_.push_back(std::move(hit));
  }

 private:
  std::list<std::shared_ptr<Hit>> hits_;
};

std::multiset<std::string> g_matches;

}  // namespace

extern "C" {

void engine_scan(int number) { Scanner::instance().scan(number); }

void engine_match(int number) {
  for (int i = 0; i < 60; ++i) g_matches.insert(std::to_string(number) + std::string(3000, 'x'));
}
}
