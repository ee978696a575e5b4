#include "tools/processes/attach/safe_point.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "common/machine/frames.h"
#include "common/machine/tail_jump.h"
#include "common/session/functions.h"

namespace oomrec::tools::processes {
namespace {

constexpr std::size_t kMostStackBytes = 256 * 1024;
constexpr std::size_t kMostFrames = 512;
constexpr std::uint64_t kMostImageBytes = std::uint64_t{64} << 20;  // read from memory
constexpr std::uint64_t kMostTailBytes = 2048;  // of a function without an exported name

// Functions of the C library in which a thread may wait, by the name that the program calls. They
// hold no lock that dlopen needs. These do nothing but a system call, so that it does not matter
// where in them a signal has interrupted the thread.
constexpr std::string_view kSystemCalls[] = {
    "read",        "readv",           "pread",       "pread64",
    "preadv",      "write",           "writev",      "pwrite",
    "pwrite64",    "pwritev",         "read_chk",    "poll",
    "ppoll",       "poll_chk",        "ppoll_chk",   "select",
    "pselect",     "epoll_wait",      "epoll_pwait", "epoll_pwait2",
    "nanosleep",   "clock_nanosleep", "usleep",      "sleep",
    "pause",       "sigsuspend",      "sigpause",    "sigwait",
    "sigwaitinfo", "sigtimedwait",    "recv",        "recvfrom",
    "recvmsg",     "recvmmsg",        "recv_chk",    "recvfrom_chk",
    "send",        "sendto",          "sendmsg",     "sendmmsg",
    "accept",      "accept4",         "connect",     "wait",
    "waitpid",     "waitid",          "wait3",       "wait4",
    "syscall",     "flock",           "fcntl",       "fcntl64",
    "ioctl",       "msgrcv",          "msgsnd",      "semop",
    "semtimedop",  "io_getevents",    "fsync",       "fdatasync",
    "splice",      "sendfile",        "sched_yield", "eventfd_read",
    "mq_receive",  "mq_timedreceive", "sigprocmask", "pthread_sigmask",
    "kill",        "setitimer"};

// These do more than that, and are safe only while the thread waits in them.
constexpr std::string_view kWaiting[] = {
    "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "pthread_join",
    "pthread_timedjoin_np", "pthread_clockjoin_np", "pthread_mutex_lock", "pthread_mutex_timedlock",
    "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_barrier_wait", "sem_wait",
    "new_sem_wait", "sem_timedwait", "sem_clockwait", "mtx_lock", "cnd_wait", "cnd_timedwait",
    "thrd_join", "thrd_sleep",
    // Of stdio, also those to which getc jumps.
    "fgets", "IO_fgets", "fgets_unlocked", "getc", "IO_getc", "fgetc", "getc_unlocked",
    "fgetc_unlocked", "getchar", "getchar_unlocked", "uflow", "IO_default_uflow", "fread",
    "IO_fread", "fread_unlocked", "getline", "getdelim", "IO_getdelim", "scanf", "fscanf",
    "isoc99_scanf", "isoc99_fscanf", "isoc23_scanf", "isoc23_fscanf"};

// In which the recorder's hook of that name waits, too.
constexpr std::string_view kWaitingForChild[] = {"wait", "waitpid", "waitid", "wait3", "wait4"};

constexpr std::string_view kLocking[] = {"pthread_mutex_lock", "pthread_mutex_timedlock",
                                         "pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
                                         "mtx_lock"};

// They call the program back, and hold no lock meanwhile.
constexpr std::string_view kCallingBack[] = {"libc_start_main", "qsort",   "qsort_r", "bsearch",
                                             "lfind",           "lsearch", "twalk",   "twalk_r",
                                             "tsearch",         "tfind"};

std::string_view bare(std::string_view name) {  // of __poll: poll
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return name;
}

template <std::size_t N>
bool has(const std::string_view (&names)[N], std::string_view name) {
  return std::ranges::find(names, bare(name)) != std::end(names);
}

// The C library calls its own functions by these names, too: __libc_realloc.
bool is_allocating(std::string_view name) {
  constexpr std::string_view kOwn = "__libc_";
  if (name.starts_with(kOwn)) name.remove_prefix(kOwn.size());
  return is_heap_function(bare(name));
}

// The frame between a signal handler and the code that it has interrupted. Its address is that of
// an instruction, or of the byte before.
bool returns_from_signal(const RemoteMemory& memory, std::uint64_t address) {
  std::uint8_t code[sizeof machine::kSignalReturnCode];
  for (const std::uint64_t at : {address, address + 1, address - machine::kSignalReturnCall})
    if (memory.read(at, code) &&
        std::equal(std::begin(code), std::end(code), std::begin(machine::kSignalReturnCode)))
      return true;
  return false;
}

}  // namespace

bool is_c_library(const RemoteModule& module) {
  const std::string_view name = module.file_name();
  return name.starts_with("libc.so.6") || name.starts_with("libc-2.") ||
         name.starts_with("libpthread.so") || name.starts_with("libpthread-2.");
}

bool is_loader(const RemoteModule& module) {
  const std::string_view name = module.file_name();
  return name.starts_with("ld-linux") || name.starts_with("ld-2.") || name.starts_with("ld.so");
}

ThreadSnapshot ThreadSnapshot::of(const RemoteMemory& memory,
                                  const machine::ThreadRegisters& registers) {
  constexpr std::uint64_t kRedZoneBytes = 128;
  ThreadSnapshot snapshot;
  snapshot.registers = registers;
  snapshot.stack_start = registers.sp() - kRedZoneBytes;
  // glibc has a thread's control block above its stack. Of the main thread, and of a coroutine, it
  // is elsewhere.
  const std::uint64_t to_control_block = registers.thread_pointer() - snapshot.stack_start;
  snapshot.stack.resize(std::min<std::uint64_t>(to_control_block, kMostStackBytes));
  snapshot.stack.resize(
      memory.read_some(snapshot.stack_start, snapshot.stack.data(), snapshot.stack.size()));
  return snapshot;
}

bool ThreadSnapshot::operator==(const ThreadSnapshot& other) const {
  return registers == other.registers && stack == other.stack;
}

// libdwfl on the snapshot of a thread.
struct SafePoints::Unwinder {
  explicit Unwinder(const RemoteMemory& of) : memory(of) {
    static const Dwfl_Callbacks kCallbacks{find_elf, find_no_debug_information, nullptr, nullptr};
    dwfl = dwfl_begin(&kCallbacks);
    if (dwfl == nullptr) return;
    g_pid = memory.pid();
    ready = dwfl_linux_proc_report(dwfl, memory.pid()) == 0 &&
            dwfl_report_end(dwfl, nullptr, nullptr) == 0;
    static const Dwfl_Thread_Callbacks kThreads{next_thread,   nullptr, read_word,
                                                set_registers, nullptr, nullptr};
    ready = ready && dwfl_attach_state(dwfl, nullptr, memory.pid(), &kThreads, this);
  }
  ~Unwinder() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  std::vector<std::uint64_t> addresses(const ThreadSnapshot& of) {
    found.clear();
    thread = &of;
    highest_read = followed_to = 0;
    is_lost = false;
    registers = of.registers;
    do {
      is_interrupted = false;
      is_whole = ready && dwfl_getthread_frames(dwfl, memory.pid(), add_frame, this) == 0;
    } while (is_interrupted);
    if (found.empty()) found.push_back(of.registers.pc());
    return found;
  }

  // The process may see other files under these names. One that has been deleted or replaced since,
  // or that lies outside of the directory to which the process has changed its root, is read as it
  // is in the process's memory, which libdwfl does for the vDSO.
  static int find_elf(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base,
                      char** path, Elf** elf) {
    if (name[0] != '/') return dwfl_linux_proc_find_elf(module, user, name, base, path, elf);
    const int file =
        open(fmt::format("/proc/{}/root{}", g_pid, name).c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) return file;
    Dwarf_Addr start = 0, end = 0;
    if (dwfl_module_info(module, nullptr, &start, &end, nullptr, nullptr, nullptr, nullptr) ==
            nullptr ||
        end - start > kMostImageBytes)
      return -1;
    return dwfl_linux_proc_find_elf(module, user, fmt::format("[vdso: {}]", g_pid).c_str(), base,
                                    path, elf);
  }
  static int find_no_debug_information(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*,
                                       const char*, GElf_Word, char**) {
    return -1;
  }

  static pid_t next_thread(Dwfl*, void* self, void** state) {
    if (*state != nullptr) return 0;
    *state = self;
    return static_cast<Unwinder*>(self)->memory.pid();
  }
  // Without a signature, which libdwfl would take for a part of the return address: its next frame
  // would be in no module. What else a walk reads are frame pointers and such, which have none.
  static bool read_word(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* self) {
    auto& unwinder = *static_cast<Unwinder*>(self);
    const ThreadSnapshot& of = *unwinder.thread;
    std::uint64_t read = 0;
    if (address >= of.stack_start && address + sizeof read <= of.stack_start + of.stack.size()) {
      unwinder.highest_read = std::max(unwinder.highest_read, address + sizeof read);
      std::memcpy(&read, of.stack.data() + (address - of.stack_start), sizeof read);
    } else if (!unwinder.memory.read(address, read)) {
      return false;
    }
    *word = machine::return_address(read);
    return true;
  }
  static bool set_registers(Dwfl_Thread* of, void* self) {
    const auto& registers = static_cast<Unwinder*>(self)->registers;
    const auto words = registers.dwarf();
    if (!dwfl_thread_state_registers(of, 0, words.size(), words.data())) return false;
    if (!registers.kDwarfHasPc) dwfl_thread_state_register_pc(of, registers.pc());
    return true;
  }
  static int add_frame(Dwfl_Frame* frame, void* self) {
    auto& unwinder = *static_cast<Unwinder*>(self);
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(frame, &pc, &is_activation) || unwinder.found.size() == kMostFrames)
      return DWARF_CB_ABORT;
    if (!is_activation) --pc;
    unwinder.found.push_back(pc);
    if (!unwinder.is_lost) unwinder.followed_to = unwinder.highest_read;  // its return address
    if (unwinder.is_at_interrupted(frame, pc)) return DWARF_CB_ABORT;
    unwinder.is_lost = unwinder.is_lost || !unwinder.has_frame_information(pc);
    return DWARF_CB_OK;
  }

  // Whether a walk is to begin anew, with the registers that a signal has interrupted.
  bool is_at_interrupted(Dwfl_Frame* frame, Dwarf_Addr pc) {
    constexpr std::uint64_t kRegisters = machine::ThreadRegisters::kInSignalFrame;
    Dwarf_Word sp = 0;
    is_interrupted = kRegisters != 0 && returns_from_signal(memory, pc) &&
                     dwfl_frame_reg(frame, machine::kDwarfSp, &sp) == 0 &&
                     memory.read(sp + kRegisters, registers.raw());
    return is_interrupted;
  }

  // Without, libdwfl guesses by the frame pointer.
  bool has_frame_information(Dwarf_Addr pc) const {
    Dwfl_Module* const module = dwfl_addrmodule(dwfl, pc);
    Dwarf_Addr bias = 0;
    Dwarf_CFI* const cfi = module == nullptr ? nullptr : dwfl_module_eh_cfi(module, &bias);
    Dwarf_Frame* frame = nullptr;
    const bool has = cfi != nullptr && dwarf_cfi_addrframe(cfi, pc - bias, &frame) == 0;
    std::free(frame);
    return has;
  }

  static inline pid_t g_pid = 0;  // dwfl gives find_elf no argument of ours
  const RemoteMemory& memory;
  Dwfl* dwfl = nullptr;
  bool ready = false;
  const ThreadSnapshot* thread = nullptr;
  machine::ThreadRegisters registers;  // with which the walk begins
  bool is_interrupted = false;         // it begins anew, with those of a signal's frame
  std::vector<std::uint64_t> found;
  bool is_whole = false;  // `found` goes up to the thread's first function
  bool is_lost = false;   // a frame was of code without call frame information
  // The stack below is that of `found` up to the first such frame: words there that are not in
  // `found` are left from earlier calls.
  std::uint64_t followed_to = 0;
  std::uint64_t highest_read = 0;
};

SafePoints::SafePoints(const RemoteMemory& memory, const std::vector<RemoteModule>& modules)
    : memory_(memory), modules_(modules), unwinder_(std::make_unique<Unwinder>(memory)) {
  for (const RemoteModule& module : modules)
    if (!is_c_library(module) && !is_loader(module) &&
        !module.file_name().starts_with("liboomrec") && module.address_of("malloc") != 0 &&
        module.address_of("free") != 0)
      allocator_ = allocator_ == nullptr ? &module : allocator_;
  std::error_code error;
  is_programs_own_ = allocator_ != nullptr &&
                     allocator_->path() == std::filesystem::read_symlink(
                                               fmt::format("/proc/{}/exe", memory.pid()), error);
  for (const RemoteModule& module : modules)
    if (is_c_library(module)) add_tails(module);
}

SafePoints::~SafePoints() = default;

// The function behind has no exported name. It ends before the next one that has.
void SafePoints::add_tails(const RemoteModule& module) {
  for (const std::string_view name : kWaiting) add_tail(module, name);
  for (const std::string_view name : kSystemCalls) add_tail(module, name);
}

void SafePoints::add_tail(const RemoteModule& module, std::string_view name) {
  const RemoteSymbol* const function = module.symbol_at(module.address_of(name));
  constexpr std::uint64_t kMostBytes = 4096;
  if (function == nullptr || function->bytes > kMostBytes) return;
  std::vector<std::uint8_t> code(function->bytes);
  if (!memory_.read(function->address, code.data(), code.size())) return;
  machine::for_each_tail_jump(code, function->address, [&](std::uint64_t target) {
    if (module.contains(target) && module.symbol_at(target) == nullptr)
      tails_.emplace(target, name);
  });
}

SafePoints::Kind SafePoints::kind_of(const RemoteModule& module) const {
  if (&module == allocator_ && is_programs_own_) return Kind::own_allocator;
  if (is_loader(module) || &module == allocator_) return Kind::forbidden;
  if (module.file_name().starts_with("liboomrec")) return Kind::recorder;
  return is_c_library(module) ? Kind::c_library : Kind::program;
}

SafePoints::Frame SafePoints::frame_at(std::uint64_t address) const {
  if (returns_from_signal(memory_, address)) return {Kind::c_library, "", "", true};
  for (const RemoteModule& module : modules_) {
    if (!module.contains(address)) continue;
    const RemoteSymbol* const function = module.symbol_at(address);
    std::string name = function != nullptr ? function->name : "";
    const auto tail = tails_.upper_bound(address);
    if (name.empty() && tail != tails_.begin() &&
        address - std::prev(tail)->first < kMostTailBytes &&
        module.contains(std::prev(tail)->first))
      name = std::prev(tail)->second;
    return {kind_of(module), std::move(name), std::string{module.file_name()}, false};
  }
  return {Kind::unknown, "", "", false};
}

// Whether a function may be called while the frames from `first` to `end`, all of the C library,
// are on the stack.
bool SafePoints::is_safe_call(const std::vector<Frame>& frames, std::size_t first, std::size_t end,
                              bool in_call) {
  const std::string& called = frames[end - 1].function;  // by the program
  const bool is_outermost = end == frames.size();
  for (std::size_t i = first; i < end; ++i)
    if (is_allocating(frames[i].function)) return false;
  if (frames[first].is_signal_return && !is_outermost)
    return end - first == 1 ? frames[end].kind == Kind::program : has(kSystemCalls, called);
  if (first == 0)
    return in_call && !is_outermost && (has(kSystemCalls, called) || has(kWaiting, called));
  return is_outermost || has(kCallingBack, called);
}

std::string SafePoints::obstacle(const ThreadSnapshot& thread) {
  if (thread.registers.has_fragile_vectors()) return "code with vector registers (SVE)";
  std::vector<Frame> frames;
  for (const std::uint64_t address : unwinder_->addresses(thread))
    frames.push_back(frame_at(address));
  const bool in_call = thread.registers.in_call();
  for (std::size_t i = 1; i < frames.size() && in_call; ++i)
    if (frames[i].kind == Kind::recorder && frames[i - 1].kind != Kind::forbidden &&
        has(kWaitingForChild, frames[i - 1].function))
      frames[i] = {Kind::program, frames[i - 1].function, "", false};
  for (const Frame& frame : frames)
    if (frame.kind == Kind::forbidden || frame.kind == Kind::recorder)
      return fmt::format("{} in {}", frame.function.empty() ? "a function" : frame.function,
                         frame.module);

  if (frames.back().is_signal_return) return "a signal handler";  // of what, is not known
  for (const Frame& frame : frames)
    if (frame.kind == Kind::own_allocator && (!in_call || is_heap_function(bare(frame.function))))
      return fmt::format("{}, which brings its own malloc", frame.module);
  for (std::size_t first = 0; first < frames.size();) {
    if (frames[first].kind != Kind::c_library) {
      ++first;
      continue;
    }
    std::size_t end = first;
    while (end < frames.size() && frames[end].kind == Kind::c_library) ++end;
    const Frame& called = frames[end - 1];  // by the program
    if (has(kLocking, called.function) && end < frames.size() &&
        frames[end].kind == Kind::own_allocator)
      return called.function + "()";
    if (!is_safe_call(frames, first, end, in_call))
      return called.function.empty() ? "a function of the C library" : called.function + "()";
    first = end;
  }
  return {};
}

bool SafePoints::may_be_in(const RemoteModule& module, const ThreadSnapshot& thread) {
  for (const std::uint64_t address : unwinder_->addresses(thread))
    if (module.contains(address)) return true;
  if (unwinder_->is_whole) return false;
  if (thread.stack.size() == kMostStackBytes) return true;
  const std::uint64_t followed = std::max(unwinder_->followed_to, thread.stack_start);
  for (std::size_t at = followed - thread.stack_start;
       at + sizeof(std::uint64_t) <= thread.stack.size(); ++at) {
    std::uint64_t word = 0;
    std::memcpy(&word, thread.stack.data() + at, sizeof word);
    if (module.contains(machine::return_address(word))) return true;
  }
  return false;
}

}  // namespace oomrec::tools::processes
