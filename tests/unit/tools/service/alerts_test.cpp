// When alerts are due, what they say, and the processes that deliver them.
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

#include "common/verdict/kinds.h"
#include "tools/service/alerts/alerts.h"
#include "tools/service/alerts/incident.h"
#include "tools/service/alerts/notifiers.h"
#include "tools/service/fleet/label_values.h"

using namespace oomrec::tools;
using namespace oomrec;
using namespace std::chrono_literals;
using Clock = service::PollClient::Clock;

// --- When alerts are due

namespace {

service::Incident incident(service::Rule rule, int pid) {
  service::Incident made;
  made.rule = rule;
  made.pid = pid;
  made.program = "train";
  made.text = "train is short of memory";
  return made;
}

const service::RateLimit::Clock::time_point kStart{1000h};

}  // namespace

TEST_CASE("a rule alerts at once, and then once a minute with all that came in between") {
  service::RateLimit rate_limit;
  CHECK(!rate_limit.due());
  rate_limit.add(incident(service::Rule::death, 1));
  auto alerts = rate_limit.take_due(kStart);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.pid == 1);
  CHECK(alerts[0].also.empty());
  CHECK(!rate_limit.due());

  for (int pid = 2; pid < 30; ++pid) rate_limit.add(incident(service::Rule::death, pid));
  CHECK(rate_limit.take_due(kStart + 59s).empty());
  CHECK(rate_limit.due() == kStart + 60s);
  alerts = rate_limit.take_due(kStart + 60s);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.pid == 2);
  CHECK(alerts[0].also.size() == service::RateLimit::kMostAlso);
  CHECK(alerts[0].left_out == 28 - 1 - service::RateLimit::kMostAlso);
  CHECK(service::json_of(alerts[0])["text"] == "train is short of memory (and 27 more)");

  CHECK(rate_limit.take_due(kStart + 10min).empty());
}

TEST_CASE("rules do not wait for each other") {
  service::RateLimit rate_limit;
  rate_limit.add(incident(service::Rule::death, 1));
  CHECK(rate_limit.take_due(kStart).size() == 1);
  rate_limit.add(incident(service::Rule::failure, 1));
  rate_limit.add(incident(service::Rule::death, 2));
  const auto alerts = rate_limit.take_due(kStart + 1s);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.rule == service::Rule::failure);
}

// --- Descriptions of how processes ended

TEST_CASE("the outcome and the verdict are independent") {
  const auto text = [](std::string_view outcome, VerdictCode verdict) {
    return service::end_text(outcome, verdict);
  };
  CHECK(text("signal 9", VerdictCode::soft_limit) ==
        "was ended by SIGKILL after a refusal at its soft limit");
  CHECK(text("exited 1", VerdictCode::soft_limit) ==
        "ended with exit code 1 after a refusal at its soft limit");
  CHECK(text("oom_killed", VerdictCode::cgroup_oom_kill) ==
        "was killed by the kernel: its memory cgroup was at its limit");
  CHECK(text("signal 6", VerdictCode::uncaught_bad_alloc) ==
        "was ended by SIGABRT after an uncaught bad_alloc");
  CHECK(text("signal 40", VerdictCode::killed_near_limit) ==
        "was ended by signal 40 near a limit of its memory");
  for (const char* const outcome : {"unknown", "", "signal", "signal x", "exited 1 2"})
    CHECK(text(outcome, VerdictCode::allocation_failed) == "is gone after memory was refused");
}

TEST_CASE("a verdict that is not proven says so") {
  const auto text = [](std::optional<Certainty> certainty) {
    return service::end_text("signal 9", VerdictCode::killed_near_limit, certainty);
  };
  CHECK(text(Certainty::possible) ==
        "was ended by SIGKILL near a limit of its memory (possible, not proven)");
  CHECK(text(Certainty::likely).ends_with("(likely, not proven)"));
  CHECK(text(Certainty::proven) == "was ended by SIGKILL near a limit of its memory");
  CHECK(text({}) == text(Certainty::proven));  // a bundle of an older version
}

TEST_CASE("each memory verdict has its own words") {
  for (const VerdictCode verdict : service::death_verdicts()) {
    CAPTURE(name_of(verdict));
    const bool plain =
        service::end_text("signal 9", verdict).ends_with(" after memory was refused");
    const bool is_plain = !verdict::is_death_related_to_memory(verdict) ||
                          verdict == VerdictCode::allocation_failed ||
                          verdict == VerdictCode::crash_after_refusal;
    CHECK(plain == is_plain);
  }
}

// --- Notifier processes: bounded in number and time, and reaped

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
