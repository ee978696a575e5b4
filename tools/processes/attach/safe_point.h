// Whether a function may be called on a stopped thread: dlopen allocates, and takes the loader's
// locks, and the C library's for exit handlers and fork handlers.
//
// It may if the thread's stack shows no function of the allocator, the loader or the recorder, and
// of the C library none but those that wait, and those that call the program back and hold no lock.
// A thread in a signal handler may have interrupted the program's own code, or a function that only
// makes a system call.
// The recorder may wait for a child: it holds nothing while the program's call of waitpid lasts. A
// program that brings its own malloc must wait in a system call, but not for a lock.
// A stack that cannot be followed to its end (code of a JIT compiler) counts as far as it goes.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/machine/thread_registers.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"

namespace oomrec::tools::processes {

// A thread as it was while it was stopped.
struct ThreadSnapshot {
  machine::ThreadRegisters registers;
  std::uint64_t stack_start = 0;
  std::vector<std::byte> stack;

  static ThreadSnapshot of(const RemoteMemory& memory, const machine::ThreadRegisters& registers);
  bool operator==(const ThreadSnapshot& other) const;
};

class SafePoints {
 public:
  // Reads the files of the modules.
  SafePoints(const RemoteMemory& memory, const std::vector<RemoteModule>& modules);
  ~SafePoints();
  SafePoints(const SafePoints&) = delete;
  SafePoints& operator=(const SafePoints&) = delete;

  // Empty: a function may be called. Else what the thread is in.
  std::string obstacle(const ThreadSnapshot& thread);

  // Whether the thread is in a function of the module, or has called one that has not returned.
  // True also if it cannot be ruled out: its stack cannot be followed to the end, and a word on it
  // is an address in the module.
  bool may_be_in(const RemoteModule& module, const ThreadSnapshot& thread);

 private:
  enum class Kind : std::uint8_t {
    program,
    own_allocator,
    c_library,
    recorder,
    forbidden,
    unknown
  };
  struct Frame {
    Kind kind;
    std::string function;  // as exported; empty: not known
    std::string module;
    bool is_signal_return;
  };
  struct Unwinder;

  Kind kind_of(const RemoteModule& module) const;
  Frame frame_at(std::uint64_t address) const;
  static bool is_safe_call(const std::vector<Frame>& frames, std::size_t first, std::size_t end,
                           bool in_call);
  void add_tails(const RemoteModule& module);
  void add_tail(const RemoteModule& module, std::string_view name);

  const RemoteMemory& memory_;
  const std::vector<RemoteModule>& modules_;
  const RemoteModule* allocator_ = nullptr;  // if it is not the C library
  bool is_programs_own_ = false;             // it is the program itself
  // Where functions go on that wait and end in a jump, such as pthread_join.
  std::map<std::uint64_t, std::string> tails_;
  std::unique_ptr<Unwinder> unwinder_;
};

bool is_c_library(const RemoteModule& module);
bool is_loader(const RemoteModule& module);

}  // namespace oomrec::tools::processes
