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

#include "tools/base/large_stack.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/views/live_run/pseudo_terminal.h"
#include "tools/views/live_run/spool.h"
#include "tools/views/live_run/text_pane.h"
#include "tools/views/screen/screen.h"
#include "tools/views/top/top_view.h"

namespace oomrec::tools::views {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBetweenLooks = std::chrono::milliseconds{500};
constexpr auto kBetweenDrawings = std::chrono::milliseconds{50};
constexpr auto kToTheView = "\x1d";  // Ctrl-]
constexpr std::string_view kInterrupt = "\x03";

// The output's part of the screen, and the line above it.
std::size_t pane_rows(Size screen) { return std::max<std::size_t>(screen.rows / 3, 3); }
Size upper_part(Size screen) {
  const std::size_t lower = pane_rows(screen) + 1;
  return {screen.columns, screen.rows > lower ? screen.rows - lower : 1};
}

// What there is to read now; empty at the end.
std::string read_some(int descriptor) {
  std::string bytes(64 * 1024, '\0');
  const ssize_t got = read(descriptor, bytes.data(), bytes.size());
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

bool is_readable(int descriptor) {
  struct pollfd input {
    descriptor, POLLIN, 0
  };
  return poll(&input, 1, 0) > 0 && (input.revents & POLLIN) != 0;
}

// Of all signals but those that a fault of our own raises, and a recording that is cut.
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

// Our terminal hands on every byte as it is, both ways.
class RawTerminal {
 public:
  RawTerminal() {
    known_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    struct termios raw = before_;
    cfmakeraw(&raw);
    if (known_) tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  ~RawTerminal() {
    if (known_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  struct termios before_ {};
  bool known_ = false;
};

}  // namespace

class LiveRun::View {
 public:
  View() : stop_(eventfd(0, EFD_CLOEXEC)), terminal_({80, 24}) {
    const SignalsBlocked blocked;  // they are the other thread's, which passes them on
    thread_ = std::thread{[this] {
      begin_.acquire();
      if (program_ != 0) on_large_stack([this] { run(); });
    }};
  }
  ~View() {
    stop();
    if (stop_ >= 0) close(stop_);
  }
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
    // Looking for names closes descriptor 0 for a moment (symbolize/open_module.cpp), in which the
    // other thread must not get that number for a file of its own.
    unshare(CLONE_FILES);
    try {
      show();
    } catch (const std::exception& error) {
      remark(fmt::format("the live view ended: {}", error.what()));
    }
    const RawTerminal raw;  // what its own terminal made of lines is made of them
    spool_.print_to(STDOUT_FILENO);
    if (spool_.lost_bytes() != 0) {
      remark(fmt::format("{} of the program's output found no room and are lost",
                         plural(spool_.lost_bytes(), "byte", "bytes")));
    }
    pass_through();
  }

  // Until the program ends, or the user has seen enough.
  void show() {
    Screen screen;
    Size size = terminal_size();
    terminal_.resize({size.columns, pane_rows(size)});
    auto next_look = Clock::now();
    auto next_drawing = next_look;
    bool changed = true;
    while (!stopped_ && !left_) {
      const auto now = Clock::now();
      if (now >= next_look) {
        look();
        next_look = now + kBetweenLooks;
        changed = true;
      }
      if (size != terminal_size()) {
        size = terminal_size();
        terminal_.resize({size.columns, pane_rows(size)});
        changed = true;
      }
      if (changed && now >= next_drawing) {
        screen.draw(picture(size, screen.utf8()));
        next_drawing = now + kBetweenDrawings;
        changed = false;
      }
      const auto until = changed ? next_drawing : next_look;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      const Ready ready = wait(std::clamp(static_cast<int>(left.count()), 0, 200));
      changed = changed || ready.output || ready.keys;
      if (ready.output) take_output();
      if (ready.keys) take_keys(screen);
    }
  }

  struct Ready {
    bool keys, output;
  };
  Ready wait(int timeout_ms) {
    std::array<struct pollfd, 3> sources = {{{stop_, POLLIN, 0},
                                             {terminal_.descriptor(), POLLIN, 0},
                                             {keyboard_gone_ ? -1 : STDIN_FILENO, POLLIN, 0}}};
    poll(sources.data(), sources.size(), timeout_ms);
    stopped_ = stopped_ || sources[0].revents != 0;
    // Where nobody has it open any more there is nothing to wait for but the end.
    const bool closed = (sources[1].revents & (POLLIN | POLLHUP)) == POLLHUP;
    if (closed && !stopped_) std::this_thread::sleep_for(kBetweenDrawings);
    return {sources[2].revents != 0, (sources[1].revents & POLLIN) != 0};
  }

  void take_output() {
    const std::string bytes = read_some(terminal_.descriptor());
    spool_.add(bytes);
    pane_.print(bytes);
  }

  void take_keys(Screen& screen) {
    if (keys_to_program_) {
      const std::string bytes = read_some(STDIN_FILENO);
      keyboard_gone_ = bytes.empty();
      const std::size_t switched = bytes.find(kToTheView);
      terminal_.type(std::string_view{bytes}.substr(0, switched));
      keys_to_program_ = switched == bytes.npos;
      return;
    }
    for (Key key = screen.key(0); key != Key::none; key = screen.key(0)) {
      if (key == Key::end_of_input) {
        keyboard_gone_ = true;
      } else if (key == Key::interrupt) {
        terminal_.type(kInterrupt);
      } else if (character(key) == U'i' && (!top_ || top_->takes_commands())) {
        keys_to_program_ = true;
        return;
      } else if (key != Key::resized && key != Key::suspend) {
        left_ = left_ || (top_ ? !top_->key(key) : character(key) == U'q');
      }
      if (key == Key::resized || keyboard_gone_ || left_) return;
    }
  }

  // The recording is there a moment after the program.
  void look() {
    if (top_) return top_->look();
    if (auto process = recording::live_process(program_))
      top_.emplace(std::move(*process), recording::CacheDirectory::of_user(), Choice{},
                   "  i: keys to it");
  }

  Picture picture(Size size, bool utf8) {
    const Size upper = upper_part(size);
    Picture picture;
    if (top_) picture = top_->picture(upper, utf8);
    if (!top_)
      picture.emplace_back(fmt::format(" waiting for the recording of process {}", program_));
    picture.resize(upper.rows);
    picture.emplace_back(keys_to_program_ ? " keys go to the program   Ctrl-]: back to the view"
                                          : " output of the program   i: give it the keys",
                         Colour::plain, keys_to_program_);
    for (Line& line : pane_.lines(pane_rows(size))) picture.push_back(std::move(line));
    return picture;
  }

  // After the view: as if the program had our terminal itself.
  void pass_through() {
    if (!stopped_) terminal_.resize(terminal_size());
    while (!stopped_) {
      const Ready ready = wait(-1);
      if (ready.output) write_all(STDOUT_FILENO, read_some(terminal_.descriptor()));
      if (!ready.keys) continue;
      const std::string bytes = read_some(STDIN_FILENO);
      keyboard_gone_ = bytes.empty();
      terminal_.type(bytes);
    }
    while (is_readable(terminal_.descriptor())) {
      const std::string bytes = read_some(terminal_.descriptor());
      if (bytes.empty() || !write_all(STDOUT_FILENO, bytes)) return;
    }
  }

  const int stop_;  // an eventfd: readable when the program has ended
  PseudoTerminal terminal_;
  Spool spool_;
  TextPane pane_;
  std::optional<TopView> top_;
  pid_t program_ = 0;
  bool stopped_ = false, left_ = false;
  bool keys_to_program_ = false, keyboard_gone_ = false;
  std::binary_semaphore begin_{0};
  std::thread thread_;  // there before the program is, which could not do without it
};

LiveRun::LiveRun() : view_(std::make_unique<View>()) {}
LiveRun::~LiveRun() = default;

bool LiveRun::in_child() const { return view_->terminal().attach(); }
void LiveRun::started(pid_t program) { view_->start(program); }

}  // namespace oomrec::tools::views
