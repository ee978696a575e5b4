// Notifier processes: bounded in number and time, and reaped.
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

#include "tools/service/alerts/notifiers.h"

using namespace oomrec::tools;
using namespace std::chrono_literals;
using Clock = service::PollClient::Clock;

namespace {

// Polls like the watcher.
void poll_for(service::NotifierProcesses& notifier_processes, std::chrono::milliseconds longest) {
  const auto until = Clock::now() + longest;
  for (;;) {
    std::vector<pollfd> polled;
    notifier_processes.add_descriptors(polled);
    const auto now = Clock::now();
    if (now >= until || polled.empty()) return;
    const auto wakes = std::min(notifier_processes.wake_time().value_or(until), until);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wakes - now);
    poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(0, wait.count())));
    notifier_processes.on_poll(polled);
  }
}

std::size_t running(const service::NotifierProcesses& notifier_processes) {
  std::vector<pollfd> polled;
  notifier_processes.add_descriptors(polled);
  return polled.size();
}

bool has_children() {
  siginfo_t info{};
  return !(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD);
}

// What a child reports, in shared memory.
struct Received {
  std::size_t bytes = 0;
  bool closed = false;
};
Received* shared() {
  void* const page =
      mmap(nullptr, sizeof(Received), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  return new (page) Received;
}

}  // namespace

TEST_CASE("a command gets the whole text, however long") {
  const std::string text(300'000, 'x');
  Received* const received = shared();
  const int ours = dup(1);
  const service::Notifier notifier{"--test", 5s, [&] {
                                     char piece[4096];
                                     for (ssize_t got = 0;
                                          (got = read(0, piece, sizeof piece)) > 0;)
                                       received->bytes += static_cast<std::size_t>(got);
                                     received->closed = fcntl(ours, F_GETFD) < 0;
                                     return 0;
                                   }};
  service::NotifierProcesses notifier_processes;
  notifier_processes.add(notifier, text);
  CHECK(running(notifier_processes) == 1);
  poll_for(notifier_processes, 5s);
  CHECK(running(notifier_processes) == 0);
  CHECK(!has_children());
  CHECK(received->bytes == text.size());
  CHECK(received->closed);  // our descriptors are not inherited
  close(ours);
  munmap(received, sizeof *received);
}

TEST_CASE("a notifier that takes too long is killed, with its children") {
  const service::Notifier notifier{"--test", 1s, [] {
                                     execl("/bin/sh", "sh", "-c", "sleep 60 & sleep 60", nullptr);
                                     return 127;
                                   }};
  service::NotifierProcesses notifier_processes;
  const auto began = Clock::now();
  notifier_processes.add(notifier, "text");
  poll_for(notifier_processes, 10s);
  const auto took = Clock::now() - began;
  CHECK(took >= 1s);
  CHECK(took < 5s);
  CHECK(!has_children());
}

TEST_CASE("four run at once, sixteen wait, and the rest is dropped") {
  const service::Notifier notifier{"--test", 10s, [] {
                                     usleep(200'000);
                                     return 0;
                                   }};
  service::NotifierProcesses notifier_processes;
  for (int i = 0; i < 30; ++i) notifier_processes.add(notifier, "text");
  CHECK(running(notifier_processes) == 4);
  const auto began = Clock::now();
  poll_for(notifier_processes, 20s);
  CHECK(Clock::now() - began >= 5 * 200ms);  // twenty, four at a time
  CHECK(running(notifier_processes) == 0);
  CHECK(!has_children());
}
