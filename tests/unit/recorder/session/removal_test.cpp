// Which sessions a later one removes: those beyond the budget, and what a kill or an exec left
// unfinished.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "common/session/directories.h"
#include "recorder/session/writer.h"
#include "tests/unit/recorder/session/fixtures.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

// Makes the kernel kill this process at its next system call with that number.
bool die_at(u32 system_call) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("dead sessions have a budget, live and young ones do not") {
  const Scratch scratch;
  {
    const auto first = session_in(scratch.path());
    first->remove_file(kHook);
  }
  std::vector<std::string> dead;
  for (unsigned number = 0; number < kMaxDeadSessions + 5; ++number) {
    Victim victim{scratch};
    for (const std::string& path : files_in(scratch.own())) {
      if (std::find(dead.begin(), dead.end(), path) == dead.end()) dead.push_back(path);
    }
    victim.child.kill();
    const timespec times[2] = {{1'000'000 + number, 0}, {1'000'000 + number, 0}};
    REQUIRE(utimensat(AT_FDCWD, dead.back().c_str(), times, 0) == 0);
  }
  const std::string young = scratch.own() + "/young.session", other = scratch.own() + "/notes.txt";
  std::ofstream{young} << "not yet a session";
  std::ofstream{other} << "no session";

  const auto alive = session_in(scratch.path());
  std::vector<std::string> left;
  for (const std::string& path : dead) {
    if (std::filesystem::exists(path)) left.push_back(path);
  }
  CHECK(left.size() == kMaxDeadSessions);
  CHECK(left.front() == dead.at(5));
  CHECK(std::filesystem::exists(young));
  CHECK(std::filesystem::exists(other));
  CHECK(std::filesystem::exists(alive->path()));
}

namespace {

// Whether `path` still exists after another session has started beside it.
bool survives_a_beginning(const Scratch& scratch, const std::string& path) {
  session_in(scratch.path())->remove_file(kHook);
  return std::filesystem::exists(path);
}

void make_old(const std::string& path) {
  const timespec long_ago[2] = {{1'000'000, 0}, {1'000'000, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), long_ago, 0) == 0);
}

}  // namespace

TEST_CASE("a session killed at its start is removed once it is too old to be starting") {
  struct Row {
    u32 killed_at;
    bool empty;
  };
  const Row rows[] = {
      {SYS_ftruncate, true},  // it has no length yet
      {SYS_madvise, false},   // no header
      {SYS_sysinfo, false},   // the owner is not recorded yet
  };
  for (const Row& row : rows) {
    CAPTURE(row.killed_at);
    const Scratch scratch;
    Child child{[&] {
      if (die_at(row.killed_at)) session_in(scratch.path());
    }};
    const int status = child.wait();
    REQUIRE(WIFSIGNALED(status));
    REQUIRE(WTERMSIG(status) == SIGSYS);
    const std::vector<std::string> files = files_in(scratch.own());
    REQUIRE(files.size() == 1);
    CHECK((std::filesystem::file_size(files[0]) == 0) == row.empty);
    CHECK(survives_a_beginning(scratch, files[0]));
    make_old(files[0]);
    CHECK_FALSE(survives_a_beginning(scratch, files[0]));
  }
}

TEST_CASE("a process stopped at its start keeps its file") {
  const Scratch scratch;
  session_in(scratch.path())->remove_file(kHook);
  const std::string path = scratch.own() + "/a-host-" + std::to_string(getpid()) + "-" +
                           std::to_string(system::start_ticks(getpid())) + "-00c0ffee.session";
  std::ofstream{path}.flush();
  make_old(path);
  CHECK(survives_a_beginning(scratch, path));
}

TEST_CASE("a session left by an exec is removed at once, unless it has failures") {
  for (const u64 failures : {u64{0}, u64{1}}) {
    const Scratch scratch;
    Signal ready;
    Child child{[&] {
      const auto session = session_in(scratch.path());
      session->header().failures_total.store(failures);
      session->mark(kHook, State::replaced, 0);
      ready.give();
      pause();
    }};
    ready.take();
    const std::string path = files_in(scratch.own()).at(0);
    child.kill();

    const auto next = session_in(scratch.path());
    CHECK(std::filesystem::exists(path) == (failures != 0));
  }
}
