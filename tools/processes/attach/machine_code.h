// The machine code that a thread of another process runs to call a function of ours there.
//
// It gets along without this command, which may be killed at any time: it maps its own stack, saves
// the floating-point state and errno, calls, and restores both. Then it waits a bounded time for
// the command to read the result, unmaps its stack, and waits a bounded time for the command to
// give the thread its registers back, with a system call that was interrupted. If nobody does, it
// restores the registers itself, and repeats the call. Until the calls, and after them, it writes
// to no memory of the program; its constants are in the code.
#pragma once

#include <cstdint>
#include <vector>

#include "common/machine/thread_registers.h"

namespace oomrec::tools::processes {

// What is called.
struct RemoteCall {
  std::uint64_t errno_location = 0;  // the functions of the process' C library
  std::uint64_t open = 0;            // dlopen; 0: the library is loaded
  std::uint64_t open_error = 0;      // dlerror
  std::uint64_t library_path = 0;    // for dlopen
  std::uint64_t function = 0;        // its address, or for dlopen its offset in the library
  std::uint64_t argument = 0;
};

// At the start of the mapping, from which the command reads how far the code has come.
struct Mailbox {
  enum State : std::uint64_t { none, at_work, done, read_by_command };
  std::uint64_t state, library, result, error;
};

inline constexpr std::uint64_t kScratchBytes = 512 * 1024;

// In front of the code. A command that was killed leaves it there.
struct CodeHeader {
  static constexpr std::uint64_t kMagic = 0x4843415454414f4f;
  std::uint64_t magic;
  std::uint64_t scratch;
};

struct MachineCode {
  std::vector<std::uint8_t> bytes;                 // starts with the header
  std::uint64_t last_wait = 0, last_wait_end = 0;  // offsets: where the mapping is gone
};

// It can be placed anywhere. `scratch`: where its mapping is to be. `after`: the registers with
// which the thread goes on, `mask` the signals that it blocks then. `way_back`: where the machine's
// last instructions are, if they are not a part of the code (machine::kWayBackBytes).
MachineCode code_of(const RemoteCall& call, std::uint64_t scratch,
                    const machine::ThreadRegisters& after, std::uint64_t mask,
                    std::uint64_t way_back);

}  // namespace oomrec::tools::processes
