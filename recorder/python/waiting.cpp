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

// System calls in which a thread does not wait for another thread of its process.
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

// Empty: unknown.
std::string_view file_of(std::uint64_t word) noexcept {
  const std::uint32_t code = word != 0 ? session::code_of(word) : 0;
  if (code == 0) return {};
  return session::g_session.view().string(session::g_session.codes.at(code).file);
}

// Calls visit(state, its innermost frame) for each thread in native code. False: not all could be
// visited.
template <class Visit>
bool for_each_waiting(InHook hook, Visit visit) noexcept {
  const std::uint64_t some = g_some_thread_state.load(std::memory_order_relaxed);
  std::uint32_t left = kMostThreads;
  // False: there is no point in going on.
  const auto look_at = [&](std::uint64_t state) noexcept {
    if (left == 0) return false;
    --left;
    Frame frame{};
    return !innermost_of_waiting(hook, state, frame) || visit(state, frame);
  };
  if (some == 0 || !look_at(some)) return false;
  for (const std::uint64_t link : {kPrevious, kNext}) {
    std::uint64_t state = some;
    for (;;) {
      const std::uint64_t before = state;
      std::uint64_t back = 0;
      if (!read(hook, before + link, state)) return false;
      if (state == 0) break;
      if (!read(hook, state + (kPrevious + kNext - link), back) || back != before ||
          !look_at(state))
        return false;
    }
  }
  return true;
}

// For threads that run no Python: whether the standard library's functions have not made this one
// wait, for another thread or for a socket. One whose code is not known may be meant.
bool may_wait_for_native_code(InHook hook, std::uint64_t state, const Frame& frame) noexcept {
  const std::uint64_t word = word_of(hook, frame);
  return word == 0 ||
         !(text::is_standard_library(file_of(word)) || waits_for_no_thread(hook, state));
}

constexpr std::size_t kMostWords = 48;

// How many frames there are inside the innermost one of the program's own, if one of those is in
// the package; 0: none is, or nothing is the program's own.
std::size_t frames_below_call(InHook hook, Frame frame, std::string_view package) noexcept {
  bool is_in_package = false;
  for (std::size_t below = 0; below < kMostWords; ++below) {
    const std::string_view file = file_of(word_of(hook, frame));
    if (text::is_programs_own(file)) return is_in_package ? below : 0;
    is_in_package = is_in_package || text::package_of(file) == package;
    if (!read_python_frame(hook, frame.previous, frame)) break;
  }
  return 0;
}

// What was found last, for the requests that follow at once. Under the lock.
struct Last {
  std::uint64_t state;
  Frame frames[kMostWords];
  std::uint64_t words[kMostWords];   // of these; 0: not shown
  std::uint64_t others[kMostWords];  // scratch: the words of another thread that waits
  FrameCopy copies[kMostWords];      // scratch
  std::size_t count;
  std::uint32_t era;
  std::uint64_t package;  // for which it was sought, by hash; 0: for a thread without Python
  // What searches may still take of the time, and when that was so.
  std::int64_t budget_ns;
  std::uint64_t time_ns;
};
constinit Last g_last_waiting{}, g_last_calling{};
constinit system::Mutex g_lock;

// Whether the thread still waits, called from the same lines.
bool still_waits(InHook hook, Last& last) noexcept {
  Frame now{};
  if (!innermost_of_waiting(hook, last.state, now) || now != last.frames[0]) return false;
  iovec to[kMostWords], from[kMostWords];
  for (std::size_t i = 0; i < last.count; ++i) {
    to[i] = {last.copies[i], sizeof(FrameCopy)};
    from[i] = {reinterpret_cast<void*>(last.frames[i].address), sizeof(FrameCopy)};
  }
  const long bytes = system::call(SYS_process_vm_readv, system::call(SYS_getpid), to, last.count,
                                  from, last.count, 0);
  if (bytes != static_cast<long>(last.count * sizeof(FrameCopy))) return false;
  for (std::size_t i = 0; i < last.count; ++i)
    if (frame_in(last.copies[i], last.frames[i].address) != last.frames[i]) return false;
  return true;
}

// A fiftieth of the time, and bursts.
bool may_search(Last& last) noexcept {
  constexpr std::uint64_t kShare = 50, kBurstNs = 2'000'000;
  const std::uint64_t now = system::monotonic_ns();
  const std::uint64_t passed = std::min(now - std::exchange(last.time_ns, now), kShare * kBurstNs);
  last.budget_ns = std::min(last.budget_ns + static_cast<std::int64_t>(passed / kShare),
                            static_cast<std::int64_t>(kBurstNs));
  return last.budget_ns > 0;
}

// The first of several that wait, and how many of its frames, the outermost, are those of the
// others, too: whichever is meant, these lines are.
class Candidates {
 public:
  Candidates(InHook hook, Last& last) noexcept : hook_(hook), last_(last) {}

  // `first`: of the lines that may be shown. False: it has none in common with the others.
  bool add(std::uint64_t state, Frame frame, std::size_t first) noexcept {
    const bool is_first = last_.count == 0;
    std::uint64_t* const words = is_first ? last_.words : last_.others;
    std::size_t count = 0;
    bool more = true;
    for (; more && count < kMostWords; more = read_python_frame(hook_, frame.previous, frame)) {
      if (is_first) last_.frames[count] = frame;
      words[count] = word_of(hook_, frame);
      if (count < first) words[count] = 0;
      ++count;
    }
    if (is_first) {
      last_.state = state;
      last_.count = count;
      is_cut_ = more;
      return true;
    }
    std::size_t common = 0;
    const std::size_t most = is_cut_ || more ? 0 : std::min(count, last_.count);
    while (common != most && words[count - 1 - common] != 0 &&
           words[count - 1 - common] == last_.words[last_.count - 1 - common])
      ++common;
    std::fill_n(last_.words, last_.count - common, 0);
    return std::any_of(last_.words, last_.words + last_.count,
                       [](std::uint64_t word) { return text::is_programs_own(file_of(word)); });
  }

 private:
  const InHook hook_;
  Last& last_;
  bool is_cut_ = false;
};

void search(InHook hook, Last& last, std::string_view package) noexcept {
  last.count = 0;
  last.state = 0;
  last.era = g_code_era.load(std::memory_order_acquire);
  Candidates candidates{hook, last};
  const bool all = for_each_waiting(hook, [&](std::uint64_t state, const Frame& frame) noexcept {
    if (package.empty())
      return !may_wait_for_native_code(hook, state, frame) ||
             (word_of(hook, frame) != 0 && candidates.add(state, frame, 0));
    // The package's lines are like those of the thread that works for it.
    const std::size_t below = frames_below_call(hook, frame, package);
    return below == 0 || candidates.add(state, frame, below);
  });
  if (!all || (last.count != 0 && !still_waits(hook, last))) last.count = 0;
}

bool may_look_at_others() noexcept {
  const Interpreter& python = g_interpreter;
  if (!python.ready.load(std::memory_order_acquire) || python.at.free_threaded ||
      python.unverified.load(std::memory_order_relaxed) || python.is_finalizing() != 0)
    return false;
  const bool has_status = python.at.thread_status != PythonOffsets::kAbsent;
  return has_status || python.version_hex < 0x030c0000;
}

std::uint64_t hash_of(std::string_view package) noexcept {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char letter : package)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100'0000'01b3;
  return package.empty() ? 0 : hash;
}

std::size_t frames_of_other(InHook hook, Last& last, std::string_view package,
                            std::span<std::uint64_t> words) noexcept {
  const std::uint64_t hash = hash_of(package);
  const system::MutexGuard guard(g_lock);
  if (!guard) return 0;
  if (may_search(last)) {
    const std::uint64_t began = system::processor_ns();  // a busy machine's waits are not its own
    last.package = hash;
    search(hook, last, package);
    last.budget_ns -= static_cast<std::int64_t>(system::processor_ns() - began);
  } else if (last.package != hash || last.era != g_code_era.load(std::memory_order_acquire) ||
             (last.count != 0 && !still_waits(hook, last))) {
    return 0;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < last.count && count < words.size(); ++i)
    if (last.words[i] != 0) words[count++] = last.words[i];
  return count;
}

}  // namespace

std::size_t waiting_frames(InHook hook, std::span<std::uint64_t> words) noexcept {
  return may_look_at_others() ? frames_of_other(hook, g_last_waiting, {}, words) : 0;
}

std::size_t calling_frames(InHook hook, const PythonStack& worker,
                           std::span<std::uint64_t> words) noexcept {
  // The main thread may run an installed program: no other thread waits for its result.
  if (system::thread_id() == system::process_id()) return 0;
  std::string_view package;
  for (std::uint32_t i = 0; i != worker.count; ++i) {
    const std::string_view file = file_of(worker.frames[i].word);
    if (text::is_programs_own(file)) return 0;
    if (package.empty()) package = text::package_of(file);
  }
  if (package.empty() || !may_look_at_others()) return 0;
  return frames_of_other(hook, g_last_calling, package, words);
}

std::size_t frames_calling(InHook hook, std::string_view package,
                           std::span<std::uint64_t> words) noexcept {
  return may_look_at_others() ? frames_of_other(hook, g_last_calling, package, words) : 0;
}

void reset_waiting_after_fork(InHook) noexcept {
  if (g_lock.held()) g_lock.unlock();  // its owner does not exist in the child
  g_last_waiting = g_last_calling = {};
  g_some_thread_state.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::stack
