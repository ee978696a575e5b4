// Shared by the writer's tests.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "recorder/session/writer.h"
#include "tests/unit/append_node.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/scratch_directory.h"

namespace oomrec::session {

inline const InHook kHook = OutsideHooks::in_hook();

// A directory for sessions, removed at the end of the test.
class Scratch {
 public:
  const char* path() const { return directory_.path().c_str(); }
  // The path of sessions in it.
  std::string own() const { return directory_.path() + "/oomrec-" + std::to_string(geteuid()); }

 private:
  tests::ScratchDirectory directory_;
};

inline std::unique_ptr<Session> session_in(const char* directory, Settings settings = {}) {
  auto session = std::make_unique<Session>();
  settings.session_directory = directory;
  REQUIRE(session->create(kHook, settings));
  return session;
}

// A child process that runs `body`. The destructor kills and reaps it.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      body();
      _exit(0);
    }
  }
  ~Child() {
    if (pid_ > 0) kill();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
};

// A pipe by which a child signals its progress.
class Signal {
 public:
  Signal() { REQUIRE(pipe2(ends_, O_CLOEXEC) == 0); }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void give(char value = 'x') { REQUIRE(write(ends_[1], &value, 1) == 1); }
  char take() {
    char value = 0;
    REQUIRE(read(ends_[0], &value, 1) == 1);
    return value;
  }

 private:
  int ends_[2];
};

// A session file, mapped like a reader.
class Recording {
 public:
  explicit Recording(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts {};
    REQUIRE(fstat(file, &facts) == 0);
    bytes_ = static_cast<std::size_t>(facts.st_size);
    data_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    REQUIRE(data_ != MAP_FAILED);
  }
  ~Recording() { munmap(data_, bytes_); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  View view() const { return View{Bytes::contiguous(data_, bytes_)}; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

inline std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator{directory, none}) {
    paths.push_back(entry.path());
  }
  return paths;
}

inline constexpr int kPassed = 33;

// Runs `body` in a child with separate limits and sessions, and returns its exit status.
template <class Body>
int status_of_child(Body body) {
  Child child{[&] { _exit(body()); }};
  const int status = child.wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Returns how many were appended until there was no room, at most `most`.
inline u64 append_until_full(Session& session, u64 most = 10'000'000) {
  u32 index = 0;
  u64 appended = 0;
  while (appended < most && tests::append_node(session, index, 0, 7)) {
    ++appended;
  }
  return appended;
}

// The session of a child that signals when it is ready, then waits to be killed.
struct Victim {
  explicit Victim(const Scratch& scratch, Settings settings = {})
      : child([&] {
          const auto session = session_in(scratch.path(), settings);
          append_until_full(*session, 1000);
          ready.give();
          pause();
        }) {
    ready.take();
  }
  Signal ready;
  Child child;
};

}  // namespace oomrec::session
