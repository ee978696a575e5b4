// Whether a session's process lives, and what fork, exec and the end leave of it.
#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <thread>

#include "common/machine/page.h"
#include "recorder/session/alive.h"
#include "recorder/session/writer.h"
#include "tests/unit/recorder/session/fixtures.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

// ThreadSanitizer does not see the recorder's system calls, and would take the mutex of the next
// session at this page for the one whose owner has ended. It sees those of libc.
void unmap_visibly(const void* page) {
  void* const mapped = mmap(const_cast<void*>(page), machine::page_bytes(), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped == page);
  REQUIRE(munmap(mapped, machine::page_bytes()) == 0);
}

Life life_in(const std::string& path) { return life_of(Recording{path}.view()); }

}  // namespace

TEST_CASE("a killed process is dead, and its entries are complete") {
  const Scratch scratch;
  Victim victim{scratch};
  const std::string path = files_in(scratch.own()).at(0);
  CHECK(life_in(path) == Life::alive);
  victim.child.kill();
  CHECK(life_in(path) == Life::dead);
  CHECK(Recording{path}.view().count(TableId::nodes) == 1001);
}

TEST_CASE("a dead process without the kernel's mark is dead in a shared pid namespace") {
  const Scratch scratch;
  Victim victim{scratch};
  const std::string path = files_in(scratch.own()).at(0);
  const auto change = [&](std::size_t offset, u32 value) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto pid = static_cast<u32>(Recording{path}.view().header().pid);
  const u32 counted_in = Recording{path}.view().header().pid_namespace;
  CHECK(life_in(path) == Life::alive);
  victim.child.kill();
  change(offsetof(Header, alive_mutex), pid);
  CHECK(life_in(path) == Life::dead);
  change(offsetof(Header, pid_namespace), counted_in + 1);  // of another pid namespace
  CHECK(life_in(path) == Life::alive);
  change(offsetof(Header, pid_namespace), 0);
  CHECK(life_in(path) == Life::alive);
}

TEST_CASE("a zombie is dead") {
  const Scratch scratch;
  Victim victim{scratch};
  const std::string path = files_in(scratch.own()).at(0);
  Recording before{path};
  const int pid = before.view().header().pid;
  kill(pid, SIGKILL);
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  CHECK(life_in(path) == Life::dead);
}

TEST_CASE("exec ends a session") {
  const Scratch scratch;
  Signal ready;
  Child child{[&] {
    const auto session = session_in(scratch.path());
    session->mark(kHook, State::replaced, 0);
    ready.give();
    execl("/bin/sleep", "sleep", "60", nullptr);
  }};
  ready.take();
  const std::string path = files_in(scratch.own()).at(0);
  for (int tries = 0; tries < 500 && life_in(path) == Life::alive; ++tries) usleep(10'000);
  const Recording recording{path};
  CHECK(life_of(recording.view()) == Life::dead);
  CHECK(recording.view().header().state == static_cast<u32>(State::replaced));
  const u32 word = *reinterpret_cast<const u32*>(recording.view().header().alive_mutex);
  CHECK((word & 0x4000'0000) != 0);  // FUTEX_OWNER_DIED
}

TEST_CASE("the kernel marks a death without libpthread, too") {
  const Scratch scratch;
  Signal ready;
  Child child{[&] {
    const auto session = session_in(scratch.path());
    REQUIRE(lock_without_libpthread(session->header()));
    ready.give();
    pause();
  }};
  ready.take();
  const std::string path = files_in(scratch.own()).at(0);
  const auto word = [&] {
    const Recording recording{path};
    return *reinterpret_cast<const u32*>(recording.view().header().alive_mutex);
  };
  CHECK(word() == static_cast<u32>(child.pid()));
  CHECK(life_in(path) == Life::alive);
  child.kill();
  CHECK(word() == 0x4000'0000);  // FUTEX_OWNER_DIED
  CHECK(life_in(path) == Life::dead);
}

TEST_CASE("the end of the thread that held the mutex is not the end of the process") {
  const Scratch scratch;
  auto session = std::make_unique<Session>();
  Settings settings;
  settings.session_directory = scratch.path();
  std::thread{[&] { REQUIRE(session->create(kHook, settings)); }}.join();
  const auto owner_died = [&] {
    return (*reinterpret_cast<const u32*>(session->header().alive_mutex) & 0x4000'0000) != 0;
  };
  CHECK(owner_died());
  CHECK(life_in(session->path()) == Life::alive);  // by pid and start time
  session->keep_alive(kHook);
  CHECK_FALSE(owner_died());
  CHECK(life_in(session->path()) == Life::alive);
}

TEST_CASE("a session of another boot is dead") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  session->header().boot_id[3] ^= 1;
  CHECK(life_of(session->view()) == Life::dead);
}

TEST_CASE("a forked child releases its parent's session") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  append_until_full(*session, 100);
  pthread_mutex_t other;
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&other, &robust);

  const auto in_child = [&] {
    session->detach(kHook);
    if (session->active() || session->nodes.size() != 0) return 1;
    if (append_until_full(*session) != 0 || session->add_string(kHook, "no") != 0) return 2;
    // The thread's list of robust mutexes must not point into unmapped memory.
    for (int round = 0; round < 3; ++round) {
      if (pthread_mutex_lock(&other) != 0 || pthread_mutex_unlock(&other) != 0) return 3;
    }
    Settings settings;
    settings.session_directory = scratch.path();
    if (!session->create(kHook, settings) || session->header().pid != getpid()) return 4;
    if (append_until_full(*session, 50) != 50) return 5;
    if (files_in(scratch.own()).size() != 2) return 6;
    session->remove_file(kHook);
    return kPassed;
  };
  SUBCASE("by fork") { CHECK(status_of_child(in_child) == kPassed); }
  SUBCASE("by a raw clone") {
    const long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(in_child());
    int status = 0;
    REQUIRE(waitpid(static_cast<pid_t>(pid), &status, 0) == pid);
    CHECK(WEXITSTATUS(status) == kPassed);
  }
  CHECK(life_of(session->view()) == Life::alive);
  CHECK(session->view().count(TableId::nodes) == 101);
  CHECK(append_until_full(*session, 10) == 10);
}

TEST_CASE("a session that ends is unmapped, but for a page in another thread's list of mutexes") {
  const Scratch scratch;
  Session session;
  Settings settings;
  settings.session_directory = scratch.path();
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t other;
  pthread_mutex_init(&other, &robust);
  std::atomic<int> step{0};
  std::thread owner{[&] {
    REQUIRE(session.create(kHook, settings));
    step = 1;
    while (step != 2) std::this_thread::yield();
    // Its list leads to the session's mutex.
    for (int round = 0; round < 3; ++round) {
      REQUIRE(pthread_mutex_lock(&other) == 0);
      REQUIRE(pthread_mutex_unlock(&other) == 0);
    }
  }};
  const auto is_mapped = [](const void* page) {
    unsigned char resident = 0;
    return syscall(SYS_mincore, page, machine::page_bytes(), &resident) == 0;
  };
  while (step != 1) std::this_thread::yield();
  append_until_full(session, 50'000);
  const Header* const first = &session.header();
  struct stat file {};
  const std::string path = session.path();
  session.close(kHook);
  CHECK_FALSE(session.active());
  CHECK(is_mapped(first));
  REQUIRE(stat(path.c_str(), &file) == 0);
  CHECK(file.st_blocks * 512 <= static_cast<long>(2 * machine::page_bytes()));

  REQUIRE(session.create(kHook, settings));  // by this thread
  const Header* const second = &session.header();
  CHECK(second != first);
  CHECK(append_until_full(session, 50) == 50);
  session.close(kHook);
  CHECK_FALSE(is_mapped(second));
  CHECK(is_mapped(first));

  step = 2;
  owner.join();
  session.close(kHook);
  CHECK_FALSE(is_mapped(first));
  unmap_visibly(first);
}
