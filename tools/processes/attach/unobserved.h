// What of a recorded process's memory the recorder does not see, by what the process's own memory
// shows: modules whose calls do not lead to our hooks.
//
// Only functions that allocate, map or release count, and those of GPU drivers. What no word shows
// is not listed: a copy of such an address in a register, on a stack or in the heap, and an
// allocator under another name that no message gives away.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/processes/attach/remote_memory.h"

namespace oomrec::tools::processes {

struct Unobserved {
  enum class Why : std::uint8_t {
    own_allocator,     // it defines malloc itself, and calls it without leaving the module
    not_redirected,    // its calls lead past the recorder
    stored_address,    // its data has the address of the real function, looked up before
    linked_allocator,  // an allocator under other names, of which only the mappings are recorded
  };
  std::string module;  // path
  Why why = Why::own_allocator;
  std::vector<std::string> functions;   // sorted
  std::vector<std::string> allocators;  // of linked_allocator, by name
};
std::string_view name_of(Unobserved::Why why);

// In order of the modules' addresses. Empty also if the recorder is not in the process, or it has
// ended. Cost: reads the variables of all modules, and the constants of their files.
std::vector<Unobserved> unobserved_in(const RemoteMemory& memory);

// Whether a copy of the recorder that came by `oomrec attach` records now.
bool is_attached(const RemoteMemory& memory);

}  // namespace oomrec::tools::processes
