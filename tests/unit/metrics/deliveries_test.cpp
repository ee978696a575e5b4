// Commands that get alerts: at most a few at once, in bounded time, and no zombies.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <new>
#include <string>

#include "tools/service/alerts/notifier_processes.h"

using namespace oomrec::tools;
using namespace std::chrono_literals;
using Clock = service::Attendant::Clock;

namespace {

// As the watcher does.
void attend_for(service::Deliveries& deliveries, std::chrono::milliseconds longest) {
  const auto until = Clock::now() + longest;
  for (;;) {
    std::vector<pollfd> polled;
    deliveries.add_polled(polled);
    const auto now = Clock::now();
    if (now >= until || polled.empty()) return;
    const auto wakes = std::min(deliveries.wakes_at().value_or(until), until);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wakes - now);
    poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(0, wait.count())));
    deliveries.attend(polled);
  }
}

std::size_t running(const service::Deliveries& deliveries) {
  std::vector<pollfd> polled;
  deliveries.add_polled(polled);
  return polled.size();
}

bool has_children() {
  siginfo_t info{};
  return !(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD);
}

// What a child tells us.
struct Told {
  std::size_t bytes = 0;
  bool closed = false;
};
Told* shared() {
  void* const page =
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  return new (page) Told;
}

}  // namespace

TEST_CASE("a command gets the whole text, however long") {
  const std::string text(300'000, 'x');
  Told* const told = shared();
  const int ours = dup(1);
  const service::Courier courier{"--test", 5s, [&] {
                                   char piece[4096];
                                   for (ssize_t got = 0; (got = read(0, piece, sizeof piece)) > 0;)
                                     told->bytes += static_cast<std::size_t>(got);
                                   told->closed = fcntl(ours, F_GETFD) < 0;
                                   return 0;
                                 }};
  service::Deliveries deliveries;
  deliveries.add(courier, text);
  CHECK(running(deliveries) == 1);
  attend_for(deliveries, 5s);
  CHECK(running(deliveries) == 0);
  CHECK(!has_children());
  CHECK(told->bytes == text.size());
  CHECK(told->closed);  // what is ours is not the command's
  close(ours);
  munmap(told, sizeof *told);
}

TEST_CASE("one that takes too long is ended, with its children") {
  const service::Courier courier{"--test", 1s, [] {
                                   execl("/bin/sh", "sh", "-c", "sleep 60 & sleep 60", nullptr);
                                   return 127;
                                 }};
  service::Deliveries deliveries;
  const auto began = Clock::now();
  deliveries.add(courier, "text");
  attend_for(deliveries, 10s);
  const auto took = Clock::now() - began;
  CHECK(took >= 1s);
  CHECK(took < 5s);
  CHECK(!has_children());
}

TEST_CASE("four run at once, sixteen wait, and the rest is left out") {
  const service::Courier courier{"--test", 10s, [] {
                                   usleep(200'000);
                                   return 0;
                                 }};
  service::Deliveries deliveries;
  for (int i = 0; i < 30; ++i) deliveries.add(courier, "text");
  CHECK(running(deliveries) == 4);
  const auto began = Clock::now();
  attend_for(deliveries, 20s);
  CHECK(Clock::now() - began >= 5 * 200ms);  // twenty, four at a time
  CHECK(running(deliveries) == 0);
  CHECK(!has_children());
}
