// The kernel's log: queries, lines and faults.
#include "tools/deaths/kernel_log.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <csignal>
#include <ctime>
#include <fstream>
#include <string>

#include "tests/unit/scratch_directory.h"
#include "tests/unit/tools/deaths/log_query.h"
#include "tools/deaths/kernel_kills.h"

using namespace oomrec::tests;
using namespace oomrec::tools;

// --- The kernel's log in the formats of the device, syslog and dmesg

namespace {

deaths::LogRecord only_record(std::string_view line) {
  const deaths::KernelLog log = deaths::parse_kernel_log(line, kClock);
  REQUIRE(log.records.size() == 1);
  return log.records.front();
}

std::uint64_t utc(const deaths::LogRecord& record) { return record.realtime_ns / kSecond; }

}  // namespace

TEST_CASE("a record of the device has microseconds since boot") {
  for (const char* const line : {"6,11295,20579984,-;python: 7 of 9; done\n",
                                 "6,11295,20579984,-,caller=T1234;python: 7 of 9; done\n"}) {
    const deaths::LogRecord record = only_record(line);
    CHECK(record.text == "python: 7 of 9; done");
    CHECK(record.realtime_ns == kClock.boot_realtime_ns + 20'579'984'000);
  }
}

TEST_CASE("a line of dmesg has seconds since boot") {
  const deaths::LogRecord record = only_record("[   20.579984] oom_reaper: reaped");
  CHECK(record.text == "oom_reaper: reaped");
  CHECK(record.realtime_ns == kClock.boot_realtime_ns + 20'579'984'000);
}

TEST_CASE("a line of syslog has local time, or a time with its zone") {
  setenv("TZ", "CET-1", 1);
  tzset();
  // 2026-11-22T01:18:19Z
  constexpr std::uint64_t kThen = 1'795'310'299;
  for (const char* const line :
       {"Nov 22 02:18:19 node7 kernel: [20579.972984] text", "Nov 22 02:18:19 node7 kernel: text",
        "2026-11-22T01:18:19.123456+00:00 node7 kernel: [20579.972984] text",
        "2026-11-22T02:18:19.123456+01:00 node7 kernel: text",
        "2026-11-21T20:48:19-04:30 node7 kernel: text",
        "2026-11-22T01:18:19Z node7 kernel: text"}) {
    const deaths::LogRecord record = only_record(line);
    CHECK(record.text == "text");
    CHECK(utc(record) == kThen);
  }
  // Without a year: the latest such day that is not in the future.
  CHECK(utc(only_record("Dec 24 01:00:00 node7 kernel: text")) == 1'766'534'400);
  unsetenv("TZ");
  tzset();
}

TEST_CASE("the formats of dmesg's options, journalctl and BusyBox") {
  setenv("TZ", "UTC", 1);
  tzset();
  constexpr std::uint64_t kThen = 1'795'310'299;  // 2026-11-22T01:18:19Z
  for (const char* const line :
       {"[Sun Nov 22 01:18:19 2026] text", "2026-11-22T01:18:19,972984+00:00 text",
        "2026-11-22T01:18:19+0000 node7 kernel: text",
        "Nov 22 01:18:19 node7 kern.warn kernel: [20579.972984] text"}) {
    CHECK(only_record(line).text == "text");
    CHECK(utc(only_record(line)) == kThen);
  }
  for (const char* const line :
       {"<4>[   20.579984] text", "kern  :warn  : [   20.579984] text",
        "[   20.579984] node7 kernel: text", "[   20.579984][   T42] text"}) {
    CHECK(only_record(line).text == "text");
    CHECK(only_record(line).realtime_ns == kClock.boot_realtime_ns + 20'579'984'000);
  }
  CHECK(only_record("[   20.579984][   T42] text").caller == "T42");
  CHECK(only_record("6,1,20579984,-,caller=C1;text").caller == "C1");
  // A kernel's line may look like another program's.
  CHECK(only_record("[   20.579984] Out of memory: Killed process 1 (a)").text ==
        "Out of memory: Killed process 1 (a)");
  unsetenv("TZ");
  tzset();
}

TEST_CASE("dates in any language, and times of which only the minute is said") {
  setenv("TZ", "UTC0", 1);
  tzset();
  constexpr std::uint64_t kThen = 1'795'310'299;  // 2026-11-22T01:18:19Z
  for (const char* const line :
       {"[So Nov 22 01:18:19 2026] text", "[dim. nov. 22 01:18:19 2026] text",
        "ноя 22 01:18:19 host3 kernel: text",
        "2026-11-22T01:18:19.000Z In(05) vcpu-2 - Guest: <4>[184233.517263] text",
        "kern: warning: [2026-11-22T01:18:19.000061988Z]: text"}) {
    INFO(line);
    const deaths::LogRecord record = only_record(line);
    CHECK(record.text == "text");
    CHECK(utc(record) == kThen);
  }
  const auto human = deaths::parse_kernel_log(
      "[  +0.5] before\n[Nov22 01:18] first\n[ +19.000285] second\n", kClock);
  REQUIRE(human.records.size() == 2);
  CHECK(utc(human.records[0]) == kThen - 19);
  CHECK(utc(human.records[1]) == kThen);
  CHECK(human.records[1].text == "second");
  // In another language the day of last month, not of this one, which is to come.
  CHECK(utc(only_record("окт 31 01:18:19 host3 kernel: text")) == kThen - 22 * 24 * 3600);
}

TEST_CASE("the caller is told apart wherever it stands") {
  for (const char* const line : {"Nov 22 01:18:19 n17 kernel: [184233.517263][ T2211] text",
                                 "[184233.517263] kernel: text"}) {
    CHECK(only_record(line).text == "text");
  }
  CHECK(only_record("Nov 22 01:18:19 n17 kernel: [184233.517263][ T2211] text").caller == "T2211");
}

TEST_CASE("lines that are not from the kernel are ignored") {
  for (const char* const line :
       {"", "Nov 22 02:18:19 node7 sshd[12]: kernel: [1.000000] text", "nonsense", "6,1,2",
        "Nov 22 02:18:19 node7 app: they said kernel: text", "[not a time] text"}) {
    CHECK(deaths::parse_kernel_log(line, kClock).records.empty());
  }
}

TEST_CASE("a log reaches back to its first record") {
  const deaths::KernelLog log =
      deaths::parse_kernel_log("6,1,5000000,-;first\n 6,ignored\n6,2,9000000,-;last\n", kClock);
  CHECK(log.records.size() == 2);
  CHECK(log.reaches_back_to(kClock.boot_realtime_ns + 5 * kSecond));
  CHECK_FALSE(log.reaches_back_to(kClock.boot_realtime_ns + 4 * kSecond));
  CHECK_FALSE(deaths::KernelLog{}.reaches_back_to(kNow));
}

TEST_CASE("the variable names a file to read instead of the log") {
  oomrec::tests::ScratchDirectory directory;
  const std::string path = directory.path() + "/kernel";
  std::ofstream{path} << "6,1,5000000,-;from the file\n";
  setenv("OOMREC_KERNEL_LOG", path.c_str(), 1);
  for (const deaths::Boot boot : {deaths::Boot::earlier, deaths::Boot::current}) {
    const deaths::KernelLog log = deaths::read_kernel_log(kClock, boot);
    REQUIRE(log.records.size() == 1);
    CHECK(log.records.front().text == "from the file");
  }
  setenv("OOMREC_KERNEL_LOG", "/nowhere", 1);
  CHECK(deaths::read_kernel_log(kClock, deaths::Boot::current).records.empty());
  unsetenv("OOMREC_KERNEL_LOG");
}

// --- The kernel's lines about faults, as kernels 4.19 to 6.12 log them

namespace {

const std::string kHead = "6,77,3599000000,-;";  // a second ago

deaths::KillQuery query() {
  deaths::KillQuery query = log_query();
  query.threads = {4711, 4720};
  query.names.emplace_back("pool[3]");
  return query;
}

int signal_in(const std::string& text, const deaths::KillQuery& of = query()) {
  const auto fault = deaths::fault_of(deaths::parse_kernel_log(text + "\n", kClock), of);
  return fault ? fault->signal : 0;
}

}  // namespace

TEST_CASE("a fault that nobody handled is logged with pid and name") {
  const std::string segfault =
      "train_the_large[4711]: segfault at 10 ip 000055bb8aae2400 sp 00007ffe9453a740 error 6 in "
      "train[1400,55bb8aae2000+1000] likely on CPU 0 (core 0, socket 0)";
  CHECK(signal_in(kHead + segfault) == SIGSEGV);
  const std::string trap = "traps: train_the_large[4711] ";
  CHECK(signal_in(kHead + trap + "trap divide error ip:4011 sp:7fff error:0 in train") == SIGFPE);
  CHECK(signal_in(kHead + trap + "trap invalid opcode ip:4011 sp:7fff error:0") == SIGILL);
  CHECK(signal_in(kHead + trap + "trap int3 ip:2155a72 sp:7fff350eee40 error:0") == SIGTRAP);
  CHECK(signal_in(kHead + trap + "general protection fault ip:40 sp:7f error:0") == SIGSEGV);
  CHECK(signal_in(kHead + trap + "general protection ip:40 sp:7f error:0") == SIGSEGV);
  const auto fault = deaths::fault_of(deaths::parse_kernel_log(kHead + segfault, kClock), query());
  REQUIRE(fault);
  CHECK(fault->line == segfault);
  CHECK(fault->realtime_ns == kNow - kSecond);
}

TEST_CASE("a thread is of the process, whatever its name") {
  CHECK(signal_in(kHead + "pool[3][4720]: segfault at 0 ip 0 sp 0 error 4") == SIGSEGV);
}

TEST_CASE("another process, name, time, namespace or line is none") {
  const std::string end = ": segfault at 10 ip 000055bb8aae2400 sp 00007ffe9453a740 error 6";
  CHECK(signal_in(kHead + "train_the_large[47110]" + end) == 0);
  CHECK(signal_in(kHead + "nginx[4711]" + end) == 0);
  CHECK(signal_in("6,77,3500000000,-;train_the_large[4711]" + end) == 0);
  CHECK(signal_in(kHead + "train_the_large[4711]: hello") == 0);
  CHECK(signal_in(kHead + "train_the_large[x4711]" + end) == 0);
  CHECK(signal_in(kHead + "train_the_large4711]" + end) == 0);
  deaths::KillQuery elsewhere = query();
  elsewhere.same_pid_namespace = false;
  CHECK(signal_in(kHead + "train_the_large[4711]" + end, elsewhere) == 0);
}
