#include "tools/views/live_run/live_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <semaphore>
#include <thread>

#include "tools/base/descriptor.h"
#include "tools/base/large_stack.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/views/live_run/pseudo_terminal.h"
#include "tools/views/live_run/text_pane.h"
#include "tools/views/screen/screen.h"
#include "tools/views/top/top_view.h"

namespace oomrec::tools::views {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSampleInterval = std::chrono::milliseconds{500};
constexpr auto kDrawInterval = std::chrono::milliseconds{50};
constexpr auto kReturnKey = "\x1d";  // Ctrl-]
constexpr std::string_view kInterrupt = "\x03";

// The lower part of the screen shows the program's output, below a separating line.
std::size_t pane_rows(Size screen) { return std::max<std::size_t>(screen.rows / 3, 3); }
Size upper_part(Size screen) {
  const std::size_t lower = pane_rows(screen) + 1;
  return {screen.columns, screen.rows > lower ? screen.rows - lower : 1};
}

// Reads the bytes available now; empty at the end of the input.
std::string read_available(int descriptor) {
  std::string bytes(64 * 1024, '\0');
  const ssize_t count = read(descriptor, bytes.data(), bytes.size());
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return bytes;
}

bool is_readable(int descriptor) {
  struct pollfd input {
    descriptor, POLLIN, 0
  };
  return poll(&input, 1, 0) > 0 && (input.revents & POLLIN) != 0;
}

// Blocks all signals but those of faults: a truncated recording, which is mapped, raises SIGBUS.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGABRT})
      sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Makes our terminal pass on every byte unchanged, in both directions.
class RawTerminal {
 public:
  RawTerminal() {
    is_saved_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    struct termios raw = before_;
    cfmakeraw(&raw);
    if (is_saved_) tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  ~RawTerminal() {
    if (is_saved_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  struct termios before_ {};
  bool is_saved_ = false;
};

}  // namespace

class LiveRun::View {
 public:
  View() : stop_(eventfd(0, EFD_CLOEXEC)), terminal_({80, 24}) {
    const SignalsBlocked blocked;  // the launcher's thread passes them on to the program
    thread_ = std::thread{[this] {
      begin_.acquire();
      if (program_ != 0) on_large_stack([this] { run(); });
    }};
  }
  ~View() { stop(); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  const PseudoTerminal& terminal() const { return terminal_; }

  void start(pid_t program) {
    program_ = program;
    begin_.release();
  }

  void stop() {
    if (!thread_.joinable()) return;
    if (program_ == 0) begin_.release();
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof one);
    thread_.join();
  }

 private:
  void run() noexcept {
    // Symbolization closes descriptor 0 for a moment (symbolize/debug_files.cpp). With a separate
    // descriptor table, the other thread cannot get that number for another file meanwhile.
    unshare(CLONE_FILES);
    try {
      show();
    } catch (const std::exception& error) {
      remark(fmt::format("the live view ended: {}", error.what()));
    }
    const RawTerminal raw;  // the pseudo-terminal has already translated line ends
    spool_.print_to(STDOUT_FILENO);
    if (spool_.lost_bytes() != 0) {
      remark(fmt::format("{} of the program's output did not fit into the buffer and are lost",
                         plural(spool_.lost_bytes(), "byte", "bytes")));
    }
    pass_through();
  }

  // Returns when the program ends or the user quits the view.
  void show() {
    Screen screen;
    Size size = terminal_size();
    terminal_.resize({size.columns, pane_rows(size)});
    auto next_sample = Clock::now();
    auto next_draw = next_sample;
    bool changed = true;
    while (!stopped_ && !quit_) {
      const auto now = Clock::now();
      if (now >= next_sample) {
        sample();
        next_sample = now + kSampleInterval;
        changed = true;
      }
      if (size != terminal_size()) {
        size = terminal_size();
        terminal_.resize({size.columns, pane_rows(size)});
        changed = true;
      }
      if (changed && now >= next_draw) {
        screen.draw(picture(size, screen.charset()));
        next_draw = now + kDrawInterval;
        changed = false;
      }
      const auto until = changed ? next_draw : next_sample;
      const auto remaining = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      const Ready ready = wait(std::clamp(static_cast<int>(remaining.count()), 0, 200));
      changed = changed || ready.output || ready.keys;
      if (ready.output) read_output();
      if (ready.keys) read_keys(screen);
    }
  }

  struct Ready {
    bool keys, output;
  };
  Ready wait(int timeout_ms) {
    std::array<struct pollfd, 3> sources = {{{stop_, POLLIN, 0},
                                             {terminal_.descriptor(), POLLIN, 0},
                                             {stdin_closed_ ? -1 : STDIN_FILENO, POLLIN, 0}}};
    poll(sources.data(), sources.size(), timeout_ms);
    stopped_ = stopped_ || sources[0].revents != 0;
    // If no process has the terminal open, poll() returns at once: sleep until the program ends.
    const bool closed = (sources[1].revents & (POLLIN | POLLHUP)) == POLLHUP;
    if (closed && !stopped_) std::this_thread::sleep_for(kDrawInterval);
    return {sources[2].revents != 0, (sources[1].revents & POLLIN) != 0};
  }

  void read_output() {
    const std::string bytes = read_available(terminal_.descriptor());
    spool_.add(bytes);
    pane_.print(bytes);
  }

  void read_keys(Screen& screen) {
    if (keys_to_program_) {
      const std::string bytes = read_available(STDIN_FILENO);
      stdin_closed_ = bytes.empty();
      const std::size_t return_key = bytes.find(kReturnKey);
      terminal_.type(std::string_view{bytes}.substr(0, return_key));
      keys_to_program_ = return_key == bytes.npos;
      return;
    }
    for (Key key = screen.key(0); key != Key::none; key = screen.key(0)) {
      if (key == Key::end_of_input) {
        stdin_closed_ = true;
      } else if (key == Key::interrupt) {
        terminal_.type(kInterrupt);
      } else if (character(key) == U'i' && (!top_ || top_->takes_commands())) {
        keys_to_program_ = true;
        return;
      } else if (key != Key::resized && key != Key::suspend) {
        quit_ = quit_ || (top_ ? !top_->key(key) : character(key) == U'q');
      }
      if (key == Key::resized || stdin_closed_ || quit_) return;
    }
  }

  // The recording appears a moment after the program has started.
  void sample() {
    if (top_) return top_->refresh();
    if (auto process = recording::live_process(program_))
      top_.emplace(std::move(*process), recording::CacheDirectory::of_user(), Choice{},
                   "  i: type into it");
  }

  Picture picture(Size size, Charset charset) {
    const Size upper = upper_part(size);
    Picture picture;
    if (top_) picture = top_->picture(upper, charset);
    if (!top_)
      picture.emplace_back(fmt::format(" waiting for the recording of process {}", program_));
    picture.resize(upper.rows);
    picture.emplace_back(keys_to_program_ ? " keys go to the program   Ctrl-]: back to the view"
                                          : " output of the program   i: type into it");
    picture.back().reversed = keys_to_program_;
    for (Line& line : pane_.lines(pane_rows(size))) picture.push_back(std::move(line));
    return picture;
  }

  // After the view: as if the program had our terminal.
  void pass_through() {
    if (!stopped_) terminal_.resize(terminal_size());
    while (!stopped_) {
      const Ready ready = wait(-1);
      if (ready.output) write_all(STDOUT_FILENO, read_available(terminal_.descriptor()));
      if (!ready.keys) continue;
      const std::string bytes = read_available(STDIN_FILENO);
      stdin_closed_ = bytes.empty();
      terminal_.type(bytes);
    }
    while (is_readable(terminal_.descriptor())) {
      const std::string bytes = read_available(terminal_.descriptor());
      if (bytes.empty() || !write_all(STDOUT_FILENO, bytes)) return;
    }
  }

  const Descriptor stop_;  // an eventfd: readable when the program has ended
  PseudoTerminal terminal_;
  Spool spool_;
  TextPane pane_;
  std::optional<TopView> top_;
  pid_t program_ = 0;
  bool stopped_ = false, quit_ = false;
  bool keys_to_program_ = false, stdin_closed_ = false;
  std::binary_semaphore begin_{0};
  std::thread thread_;  // started before the program, which runs only if that succeeds
};

LiveRun::LiveRun() : view_(std::make_unique<View>()) {}
LiveRun::~LiveRun() = default;

bool LiveRun::attach_child() const { return view_->terminal().attach(); }
void LiveRun::started(pid_t program) { view_->start(program); }

}  // namespace oomrec::tools::views
