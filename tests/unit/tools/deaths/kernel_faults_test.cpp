// The kernel's lines about faults, as kernels 4.19 to 6.12 log them.
#include "tools/deaths/kernel_kills.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "tests/unit/tools/deaths/log_query.h"

using namespace oomrec::tests;
using namespace oomrec::tools;

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
