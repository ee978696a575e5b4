// The helper process, as seen by the failing process and its user.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "common/system/files.h"
#include "recorder/helper/from_process.h"
#include "recorder/session/writer.h"
#include "tests/unit/common/bundle/scratch.h"

using namespace oomrec;
using namespace oomrec::bundle;
using namespace oomrec::helper;
using session::g_session;

namespace {

const InHook kHook = OutsideHooks::in_hook();

constinit std::atomic<int> g_signals{0};
void count_signal(int) { ++g_signals; }

// This process' session with one failure. Created once, since a process has only one.
std::uint32_t failure_entry() {
  static const std::uint32_t failure = [] {
    static Scratch directory;
    std::filesystem::create_directories(directory.dumps);
    session::Settings settings;
    const std::string path = directory.dumps.string();
    settings.session_directory = path.c_str();
    REQUIRE(g_session.create(kHook, settings));
    REQUIRE(prepare(nullptr));
    std::uint32_t index = 0;
    REQUIRE(g_session.failures.append(kHook, index, [](session::Failure& f) {
      f.bytes = 4099;
      f.error = ENOMEM;
      f.api = static_cast<std::uint16_t>(Api::malloc);
      f.time_ns = system::monotonic_ns();
    }));
    return index;
  }();
  return failure;
}

Result write_here(const std::filesystem::path& directory, bool quiet = true, unsigned seconds = 5,
                  bool reported = false) {
  Cause cause;
  cause.failure = failure_entry();
  cause.trigger = Trigger::allocation_failed;
  const std::string text = directory.string();
  return write_from_process(kHook, cause, {text.c_str(), 0, 0}, {quiet, reported}, seconds);
}

std::string status_line(const char* key) {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return line;
  return {};
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator begin{"/proc/self/fd"};
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator{}));
}

// The pids of all unreaped children of this process' threads.
std::string children() {
  std::string pids;
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::ifstream file{task.path() / "children"};
    pids.append(std::istreambuf_iterator<char>{file}, {});
  }
  return pids;
}

// Writes a bundle and counts it in the session, like the recorder.
Result write_counted(const std::filesystem::path& directory) {
  failure_entry();
  g_session.header().bundles_written.fetch_add(1);
  return write_here(directory);
}

std::filesystem::path path_of_bundle(std::uint64_t number) {
  char path[4096];
  return std::filesystem::path{path_of(kHook, number, path, 5)};
}

// Redirects standard error to a pipe, and reads what was written.
class CaughtError {
 public:
  CaughtError() : before_(dup(2)) {
    REQUIRE(pipe2(pipe_, O_CLOEXEC) == 0);
    dup2(pipe_[1], 2);
    prepare(nullptr);  // records this as the original stderr
  }
  ~CaughtError() {
    dup2(before_, 2);
    for (const int fd : {before_, pipe_[0], pipe_[1]}) close(fd);
    prepare(nullptr);
  }
  std::string text() {
    char buffer[8192];
    fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
    const ssize_t bytes = read(pipe_[0], buffer, sizeof buffer);
    return {buffer, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
  }
  int reader() const { return pipe_[0]; }
  int writer() const { return pipe_[1]; }

 private:
  int before_;
  int pipe_[2];
};

}  // namespace

TEST_CASE("the helper is invisible to the program") {
  Scratch scratch;
  failure_entry();
  struct sigaction action = {};
  action.sa_handler = count_signal;
  sigaction(SIGCHLD, &action, nullptr);
  const std::size_t descriptors = open_descriptors();
  const std::string blocked = status_line("SigBlk");
  errno = 77;

  CHECK(write_here(scratch.dumps) == Result::written);

  CHECK(errno == 77);
  CHECK(status_line("Threads") == "Threads:\t1");
  CHECK(status_line("SigBlk") == blocked);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
  CHECK(finish(kHook, 5));
  CHECK(open_descriptors() == descriptors);
  CHECK(g_signals == 0);
  CHECK(scratch.entries() == 1);
  CHECK(children().empty());  // reaped
}

TEST_CASE("a hanging write delays the program no longer than the bound") {
  Scratch scratch;
  failure_entry();
  const auto began = std::chrono::steady_clock::now();
  system::g_injection = {.fail_at = 1, .only = SYS_write, .hang_seconds = 20};

  CHECK(write_here(scratch.dumps, true, 1) == Result::timed_out);

  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(took >= std::chrono::milliseconds(900));
  CHECK(took < std::chrono::seconds(15));
  CHECK(system::g_injection.failed == 1);
  system::g_injection = {};
  CHECK(finish(kHook, 5));
  CHECK(write_here(scratch.dumps) == Result::written);
  CHECK(finish(kHook, 5));  // otherwise the next test's plan would apply to this one's fsync
}

TEST_CASE("a slow fsync does not delay the program") {
  Scratch scratch;
  failure_entry();
  system::g_injection = {.fail_at = 1, .only = SYS_fsync, .hang_seconds = 5};
  const auto began = std::chrono::steady_clock::now();
  CHECK(write_here(scratch.dumps) == Result::written);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(4));
  CHECK_FALSE(finish(kHook, 0));
  CHECK(finish(kHook, 30));
  system::g_injection = {};
  CHECK(scratch.entries() == 1);
}

TEST_CASE("a late outcome is written by a helper that does not delay the program") {
  Scratch scratch;
  failure_entry();
  REQUIRE(write_here(scratch.dumps) == Result::written);
  REQUIRE(finish(kHook, 5));
  const auto outcome = [&] {
    const auto bundle = *std::filesystem::directory_iterator{scratch.dumps};
    std::ifstream file{bundle.path() / "metadata.json"};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    return text.find("\"recovered\"") != std::string::npos;
  };
  CHECK_FALSE(outcome());
  system::g_injection = {.fail_at = 1, .only = SYS_renameat, .hang_seconds = 5};
  const auto began = std::chrono::steady_clock::now();
  CHECK(complete_last(kHook, OutcomeKind::recovered, 0, 1));
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(system::g_injection.failed == 1);
  system::g_injection = {};
  CHECK(took < std::chrono::seconds(4));
  CHECK_FALSE(complete_last(kHook, OutcomeKind::recovered, 0, 0));
  CHECK(finish(kHook, 30));
  CHECK(outcome());
  CHECK(scratch.entries() == 1);
}

TEST_CASE("threads that fail at once get one bundle each, with different names") {
  Scratch scratch;
  failure_entry();
  constexpr unsigned kThreads = 16;
  std::atomic<unsigned> written{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back(
        [&] { written += write_here(scratch.dumps, true, 30) == Result::written; });
  for (std::thread& thread : threads) thread.join();
  CHECK(finish(kHook, 5));
  CHECK(written == kThreads);
  CHECK(scratch.entries() == kThreads);
}

TEST_CASE("the report is on stderr, and says where the bundle is") {
  Scratch scratch;
  failure_entry();
  CaughtError error;
  CHECK(write_here(scratch.dumps, false) == Result::written);
  const std::string text = error.text();
  CHECK(text.find("asked malloc for 4.0 KiB and was refused") != std::string::npos);
  CHECK(text.find("oomrec: bundle " + scratch.dumps.string()) != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 8);
  CHECK(finish(kHook, 5));
}

TEST_CASE("for a reported failure it prints only the bundle's current path") {
  Scratch scratch;
  failure_entry();
  CaughtError error;
  CHECK(write_here(scratch.dumps, false, 5, true) == Result::written);
  const std::string text = error.text();
  CHECK(text.starts_with("oomrec: bundle " + scratch.dumps.string()));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(finish(kHook, 5));
}

TEST_CASE("an unwritable stderr loses the lines, and nothing else") {
  Scratch scratch;
  failure_entry();
  signal(SIGPIPE, SIG_DFL);
  CaughtError error;
  SUBCASE("a full pipe") {
    fcntl(error.writer(), F_SETFL, O_NONBLOCK);
    const std::string much(65536, 'x');
    while (write(error.writer(), much.data(), much.size()) > 0) {
    }
    fcntl(error.writer(), F_SETFL, 0);
  }
  SUBCASE("a pipe without a reader") { dup2(open("/dev/null", O_RDONLY), error.reader()); }
  SUBCASE("a closed stderr") { close(2); }
  SUBCASE("another file under its descriptor") { dup2(open("/dev/null", O_WRONLY), 2); }
  CHECK(write_here(scratch.dumps, false, 5) == Result::written);
  CHECK(finish(kHook, 5));
  CHECK(scratch.entries() == 1);
}

TEST_CASE("a bundle goes to the session's directory if its own is not writable") {
  failure_entry();
  CaughtError error;
  const std::filesystem::path home = std::filesystem::path{g_session.path()}.parent_path();
  CHECK(write_here("/proc/nowhere", false) == Result::written);
  CHECK(finish(kHook, 5));
  const std::string text = error.text();
  CHECK(text.find("/proc/nowhere: No such file or directory; the bundle went to " +
                  home.string()) != std::string::npos);
}

TEST_CASE("without a new process the bundle is written in place") {
  Scratch scratch;
  failure_entry();
  std::filesystem::create_directories(scratch.dumps);
  std::filesystem::permissions(scratch.dumps, std::filesystem::perms::all);
  std::filesystem::permissions(scratch.dumps.parent_path(), std::filesystem::perms::all);
  const pid_t child = fork();
  if (child == 0) {
    // RLIMIT_NPROC does not apply to root.
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || fork() != -1) _exit(3);
    errno = 77;
    _exit(write_here(scratch.dumps) == Result::written && errno == 77 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(scratch.entries() == 1);
}

TEST_CASE("a forked child writes its own bundle") {
  Scratch scratch;
  failure_entry();
  CHECK(write_here(scratch.dumps) == Result::written);
  const pid_t child = fork();
  if (child == 0) _exit(write_here(scratch.dumps) == Result::written && finish(kHook, 5) ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(finish(kHook, 5));
  CHECK(scratch.entries() == 2);
}

TEST_CASE("each bundle is found in its directory and completed there") {
  Scratch here, there;
  CHECK(write_counted(here.dumps) == Result::written);
  CHECK(write_counted(there.dumps) == Result::written);
  const std::uint64_t last = g_session.header().bundles_written;
  CHECK(path_of_bundle(last).parent_path() == there.dumps);
  const std::filesystem::path first = path_of_bundle(last - 1);
  REQUIRE(first.parent_path() == here.dumps);
  text::ExceptionTexts texts;
  texts.message = "added later";
  CHECK(complete_texts_of(kHook, last - 1, texts, 5));
  CHECK(Scratch::json(first / "metadata.json")["exception_message"] == "added later");
  // The cache of directories is full: the first is evicted, and not mistaken for another.
  for (int i = 0; i < 3; ++i) CHECK(write_counted(Scratch{}.dumps) == Result::written);
  CHECK(path_of_bundle(last - 1).empty());
}

TEST_CASE("threads that write, complete and request bundles at once leave no process behind") {
  Scratch scratch;
  CHECK(write_counted(scratch.dumps) == Result::written);
  const std::uint64_t number = g_session.header().bundles_written;
  std::atomic<unsigned> right{0};
  std::vector<std::thread> threads;
  const auto many = [&](auto&& call) {
    threads.emplace_back([&right, call] {
      for (int i = 0; i < 20; ++i) right += call() ? 1 : 0;
    });
  };
  many([&] { return write_here(scratch.dumps, true, 30) == Result::written; });
  many([&] { return finish(kHook, 30); });
  for (int thread = 0; thread < 2; ++thread) {
    many([&] { return complete_texts_of(kHook, number, text::ExceptionTexts{}, 30); });
    many([&] {
      char path[4096];
      return !path_of(kHook, number, path, 30).empty();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 6 * 20);
  CHECK(finish(kHook, 5));
  CHECK(children().empty());
}

TEST_CASE("a forked child does not know its parent's bundles") {
  Scratch scratch;
  CHECK(write_counted(scratch.dumps) == Result::written);
  CHECK(finish(kHook, 5));
  const std::uint64_t number = g_session.header().bundles_written;
  const pid_t child = fork();
  if (child == 0) _exit(path_of_bundle(number).empty() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK_FALSE(path_of_bundle(number).empty());
}
