// A library that a Python program loads by ctypes to get the stack that the recorder would record
// at that point: the real stack walker with its own session, without any hook.

#include <sys/time.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "common/session/python_lines.h"
#include "common/session/view.h"
#include "recorder/python/attach.h"
#include "recorder/python/interpreter.h"
#include "recorder/python/walk.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/symbols/elf_symbols.h"

#define PROBE extern "C" __attribute__((visibility("default")))

using namespace oomrec;
using session::g_session;

namespace {

// Writes text into the caller's buffer. Text that does not fit is missing, so the caller sees too
// few lines.
class Writer {
 public:
  Writer(char* out, std::size_t capacity) noexcept : out_(out), left_(capacity) {}

  void put(std::string_view text) noexcept {
    const std::size_t bytes = text.size() < left_ ? text.size() : left_ - 1;
    std::memcpy(out_, text.data(), bytes);
    out_ += bytes;
    left_ -= bytes;
    *out_ = '\0';
  }
  void put(unsigned long number) noexcept {
    char digits[24];
    put({digits, static_cast<std::size_t>(snprintf(digits, sizeof digits, "%lu", number))});
  }

 private:
  char* out_;
  std::size_t left_;
};

// "line<tab>name<tab>file<newline>"
void put_python_frame(Writer& out, const session::View& view, std::uint64_t frame) noexcept {
  session::Code code{};
  view.read(session::TableId::codes, session::code_of(frame), code);
  out.put(session::python_line(view.header().python.version_hex, code.first_line,
                               view.string(code.line_table), session::instruction_of(frame)));
  out.put("\t");
  out.put(view.string(code.name));
  out.put("\t");
  out.put(view.string(code.file));
  out.put("\n");
}

void put_native_frame(Writer& out, const session::View& view, std::uint64_t frame) noexcept {
  const InHook hook = OutsideHooks::in_hook();
  session::Module module{};
  view.read(session::TableId::modules, session::module_of(frame), module);
  symbols::ElfSymbols symbols(hook, module.start);
  char name[128] = "";
  std::uint64_t offset = 0;
  symbols.name_at(hook, module.base + session::offset_of(frame) - 1, name, sizeof name, offset);
  out.put("native ");
  out.put(name);
  out.put("\n");
}

}  // namespace

// Returns 0, or what is missing: 1 a session, 2 the interpreter.
PROBE int probe_start(const char* directory) {
  session::Settings settings;
  settings.session_directory = directory;
  settings.budget_bytes = std::uint64_t{64} << 20;
  if (!g_session.create(OutsideHooks::in_hook(), settings)) return 1;
  stack::start();
  return stack::g_interpreter.ready ? 0 : 2;
}

// A thread's memos, as in a recorded program: a probe's result may reuse the previous probe's of
// its kind.
namespace {

stack::ThreadStacks& thread_stacks() {
  static thread_local const auto mine = std::make_unique<stack::ThreadStacks>();
  return *mine;
}
stack::PythonCache& thread_frames() {
  static thread_local const auto mine = std::make_unique<stack::PythonCache>();
  return *mine;
}

}  // namespace

// The Python frames alone, innermost first. Returns their number, negated if cut off.
PROBE int probe_frames(char* out, unsigned capacity) {
  const stack::PythonStack stack = stack::python_stack(OutsideHooks::in_hook(), thread_frames());
  Writer writer(out, capacity);
  const session::View view = g_session.view();
  int count = 0;
  for (std::uint32_t left = stack.count; left != 0; --left) {
    const std::uint64_t word = stack.frames[left - 1].word;
    if (word == 0) continue;
    put_python_frame(writer, view, word);
    ++count;
  }
  return stack.truncated ? -count : count;
}

// The merged stack as it is interned: Python lines as above, "native <exported name>",
// "special".
PROBE int probe_stack(char* out, unsigned capacity) {
  const std::uint32_t node = stack::capture(OutsideHooks::in_hook(), thread_stacks(), 0);
  Writer writer(out, capacity);
  const session::View view = g_session.view();
  return static_cast<int>(view.walk(node, [&](std::uint64_t frame) {
    switch (session::kind_of(frame)) {
      case session::FrameKind::python:
        put_python_frame(writer, view, frame);
        break;
      case session::FrameKind::native:
        put_native_frame(writer, view, frame);
        break;
      case session::FrameKind::script:
      case session::FrameKind::special:
        writer.put("special\n");
        break;
    }
  }));
}

// Walks repeatedly until the process ends: a thread that allocates without the GIL while the
// interpreter finalizes.
PROBE void probe_forever() {
  for (;;) stack::python_stack(OutsideHooks::in_hook(), thread_frames());
}

// Walks in a signal handler, at any instruction of the interpreter. g_walks counts the walks,
// g_foreign the frames with unknown code.
namespace {

stack::PythonCache g_memo;
volatile unsigned g_walks, g_foreign;

void walk_in_handler(int) {
  const KeepErrno keep;
  const stack::PythonStack stack = stack::python_stack(OutsideHooks::in_hook(), g_memo, true);
  for (std::uint32_t i = 0; i < stack.count; ++i) {
    const std::uint64_t word = stack.frames[i].word;
    g_foreign = g_foreign + (word != 0 && session::code_of(word) == 0);
  }
  g_walks = g_walks + 1;
}

}  // namespace

PROBE void probe_signals(unsigned microseconds) {
  struct sigaction action {};
  action.sa_handler = walk_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const timeval interval{0, microseconds};
  const itimerval timer{interval, interval};
  setitimer(ITIMER_REAL, &timer, nullptr);
}
PROBE unsigned probe_walks() { return g_walks; }
PROBE unsigned probe_foreign() { return g_foreign; }

// Attaches to an interpreter loaded into a local scope, with its ELF header at `start`. 0:
// attached.
PROBE int probe_module(std::uint64_t start) {
  stack::python_module_loaded(OutsideHooks::in_hook(), start);
  return stack::g_interpreter.ready ? 0 : 2;
}

PROBE unsigned probe_codes() { return g_session.codes.size(); }
