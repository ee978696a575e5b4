#include "recorder/python/waiting.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/session/view.h"
#include "common/system/files.h"
#include "common/system/mutex.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "common/text/own_code.h"
#include "recorder/python/codes.h"
#include "recorder/python/thread.h"
#include "recorder/session/writer.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

// Where a thread's state links to its neighbours, in each version.
constexpr std::uint64_t kPrevious = 0, kNext = 8;
constexpr std::uint32_t kMostThreads = 16;
constexpr std::uint32_t kMostShims = 8;

// A frame of another thread, as it was read.
struct Frame {
  std::uint64_t address, previous, code, instruction;
  std::uint32_t role;
  bool operator==(const Frame&) const = default;
};

template <class T>
bool read(InHook hook, std::uint64_t address, T& out) noexcept {
  return address % alignof(T) == 0 && symbols::read_own_memory(hook, address, &out, sizeof out);
}

using FrameCopy = std::byte[128];

Frame frame_in(const FrameCopy& copy, std::uint64_t address) noexcept {
  const FrameCells cells = cells_of(g_interpreter.at, reinterpret_cast<std::uint64_t>(copy));
  return {address, cells.previous, code_of(cells.code), cells.instruction, cells.role};
}

bool read_frame(InHook hook, std::uint64_t address, Frame& out) noexcept {
  FrameCopy copy;
  if (g_interpreter.at.frame_instruction + 8u > sizeof copy || !read(hook, address, copy))
    return false;
  out = frame_in(copy, address);
  return true;
}

// From this address outwards, past the interpreter's own. False: there is none.
bool read_python_frame(InHook hook, std::uint64_t address, Frame& out) noexcept {
  for (std::uint32_t left = kMostShims; left != 0 && address != 0; --left) {
    if (!read_frame(hook, address, out)) return false;
    if (!is_shim_owner(out.role) && out.code != 0) return true;
    address = out.previous;
  }
  return false;
}

// Whether it runs Python, rather than native code without the lock of the interpreter.
bool runs_python(InHook hook, std::uint64_t state) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  if (at.thread_status == PythonOffsets::kAbsent)
    return reinterpret_cast<std::uint64_t>(g_interpreter.attached_state()) == state;
  std::uint32_t status = 0;
  return !read(hook, state + at.thread_status, status) ||
         (status & PythonOffsets::kThreadIsActive) != 0;
}

// Calls by which nobody waits for another thread of its process.
constexpr std::uint64_t kNotForThreads[] = {
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_ppoll,
    SYS_pselect6,
    SYS_epoll_pwait,
    SYS_epoll_pwait2,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_accept,
    SYS_accept4,
    SYS_wait4,
    SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait,
    SYS_waitid,
#ifdef SYS_poll
    SYS_poll,
    SYS_select,
    SYS_epoll_wait,
    SYS_pause,
#endif
};

// Whether it sleeps, or waits for another process or for a socket: a bystander.
bool waits_for_no_thread(InHook hook, std::uint64_t state) noexcept {
  constexpr std::uint32_t kSinceVersion = 0x030b0000;
  if (g_interpreter.version_hex < kSinceVersion) return false;
  std::uint64_t tid = 0;  // native_thread_id, which follows
  if (!read(hook, state + g_interpreter.at.thread_id + 8, tid)) return false;
  char path[64], text[256];
  system::Text name{path};
  (name << "/proc/self/task/").number(tid) << "/syscall";
  // "230 0x1 …"; of a thread that runs "running".
  if (system::read_file(path, text, sizeof text) <= 0 || text[0] < '0' || text[0] > '9')
    return false;
  return std::ranges::find(kNotForThreads, system::number_in(text)) != std::end(kNotForThreads);
}

// The frame in which a thread waits. False: it runs, or has none.
bool innermost_of_waiting(InHook hook, std::uint64_t state, Frame& out) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  if (runs_python(hook, state)) return false;
  std::uint64_t frame = 0, cframe = 0;
  if (at.thread_frame != PythonOffsets::kAbsent)
    return read(hook, state + at.thread_frame, frame) && read_python_frame(hook, frame, out);
  return read(hook, state + at.thread_cframe, cframe) &&
         read(hook, cframe + at.cframe_current, frame) && read_python_frame(hook, frame, out);
}

std::uint64_t word_of(InHook hook, const Frame& frame) noexcept {
  const std::uint32_t id = intern_code_of_other_thread(hook, frame.code);
  return id == 0 || id == kHiddenCode
             ? 0
             : session::python_frame(id,
                                     instruction_of(frame.address, frame.code, frame.instruction));
}

// Waits for others by the standard library's functions: for another thread's, or for a socket.
bool is_in_standard_library(std::uint64_t word) noexcept {
  const auto& code = session::g_session.codes.at(session::code_of(word));
  return text::is_standard_library(session::g_session.view().string(code.file));
}

struct WaitingThread {
  std::uint64_t state;
  Frame innermost;
};

// The only thread that waits in native code. state 0: none, or several.
WaitingThread find_waiting(InHook hook) noexcept {
  const std::uint64_t some = g_some_thread_state.load(std::memory_order_relaxed);
  WaitingThread found{};
  std::uint32_t left = kMostThreads;
  // False: there is no point in going on.
  const auto visit = [&](std::uint64_t state) noexcept {
    if (left == 0) return false;
    --left;
    Frame frame{};
    if (!innermost_of_waiting(hook, state, frame)) return true;
    const std::uint64_t word = word_of(hook, frame);
    if (word == 0) return false;
    if (is_in_standard_library(word) || waits_for_no_thread(hook, state)) return true;
    if (found.state != 0) return false;
    found = {state, frame};
    return true;
  };
  if (some == 0 || !visit(some)) return {};
  for (const std::uint64_t link : {kPrevious, kNext}) {
    std::uint64_t state = some;
    for (;;) {
      const std::uint64_t before = state;
      std::uint64_t back = 0;
      if (!read(hook, before + link, state)) return {};
      if (state == 0) break;
      if (!read(hook, state + (kPrevious + kNext - link), back) || back != before || !visit(state))
        return {};
    }
  }
  return found;
}

// What was found last, for the requests that follow at once. Under the lock.
constexpr std::size_t kMostWords = 48;
struct Last {
  std::uint64_t state;
  Frame frames[kMostWords];
  std::uint64_t words[kMostWords];  // of these; 0: not shown
  FrameCopy copies[kMostWords];     // scratch
  std::size_t count;
  std::uint32_t era;
  // What searches may still take of the time, and when that was so.
  std::int64_t budget_ns;
  std::uint64_t time_ns;
};
constinit Last g_last{};
constinit system::Mutex g_lock;

// Whether the thread still waits, called from the same lines.
bool still_waits(InHook hook) noexcept {
  Frame now{};
  if (!innermost_of_waiting(hook, g_last.state, now) || now != g_last.frames[0]) return false;
  iovec to[kMostWords], from[kMostWords];
  for (std::size_t i = 0; i < g_last.count; ++i) {
    to[i] = {g_last.copies[i], sizeof(FrameCopy)};
    from[i] = {reinterpret_cast<void*>(g_last.frames[i].address), sizeof(FrameCopy)};
  }
  const long bytes = system::call(SYS_process_vm_readv, system::call(SYS_getpid), to, g_last.count,
                                  from, g_last.count, 0);
  if (bytes != static_cast<long>(g_last.count * sizeof(FrameCopy))) return false;
  for (std::size_t i = 0; i < g_last.count; ++i)
    if (frame_in(g_last.copies[i], g_last.frames[i].address) != g_last.frames[i]) return false;
  return true;
}

// A fiftieth of the time, and bursts.
bool may_search() noexcept {
  constexpr std::uint64_t kShare = 50, kBurstNs = 2'000'000;
  const std::uint64_t now = system::monotonic_ns();
  const std::uint64_t passed =
      std::min(now - std::exchange(g_last.time_ns, now), kShare * kBurstNs);
  g_last.budget_ns = std::min(g_last.budget_ns + static_cast<std::int64_t>(passed / kShare),
                              static_cast<std::int64_t>(kBurstNs));
  return g_last.budget_ns > 0;
}

void search(InHook hook) noexcept {
  g_last.count = 0;
  g_last.era = g_code_era.load(std::memory_order_acquire);
  const WaitingThread waiting = find_waiting(hook);
  g_last.state = waiting.state;
  Frame frame = waiting.innermost;
  bool more = waiting.state != 0;
  while (more && g_last.count < kMostWords) {
    g_last.words[g_last.count] = word_of(hook, frame);
    g_last.frames[g_last.count++] = frame;
    more = read_python_frame(hook, frame.previous, frame);
  }
  if (g_last.count != 0 && !still_waits(hook)) g_last.count = 0;
}

}  // namespace

std::size_t waiting_frames(InHook hook, std::span<std::uint64_t> words) noexcept {
  const Interpreter& python = g_interpreter;
  if (!python.ready.load(std::memory_order_acquire) || python.at.free_threaded ||
      python.unverified.load(std::memory_order_relaxed) || python.is_finalizing() != 0)
    return 0;
  const bool has_status = python.at.thread_status != PythonOffsets::kAbsent;
  if (!has_status && python.version_hex >= 0x030c0000) return 0;
  const system::MutexGuard guard(g_lock);
  if (!guard) return 0;
  if (may_search()) {
    const std::uint64_t began = system::processor_ns();  // a busy machine's waits are not its own
    search(hook);
    g_last.budget_ns -= static_cast<std::int64_t>(system::processor_ns() - began);
  } else if (g_last.era != g_code_era.load(std::memory_order_acquire) ||
             (g_last.count != 0 && !still_waits(hook))) {
    return 0;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < g_last.count && count < words.size(); ++i)
    if (g_last.words[i] != 0) words[count++] = g_last.words[i];
  return count;
}

void reset_waiting_after_fork(InHook) noexcept {
  if (g_lock.held()) g_lock.unlock();  // its owner does not exist in the child
  g_last = {};
  g_some_thread_state.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::stack
