// Limits that a language's runtime sets to its own heap: what the command line has, and which value
// fits into the process' cgroup. Private to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/findings/advice/advice.h"

namespace oomrec::tools::findings {

// The last one that the arguments set, as the runtimes take it. Options in the environment
// (NODE_OPTIONS, JAVA_TOOL_OPTIONS) are not recorded: they may contain secrets.
HeapLimit heap_limit_of(std::string_view program, const std::vector<std::string>& arguments);

// Of PHP's message "Allowed memory size of 8388608 bytes exhausted"; 0: another text.
std::uint64_t php_limit_in(std::string_view evidence);

// Its runtime's own limit was reached: what it is, and what to set it to.
std::string raise_heap_text(const AdviceFacts&);

// A sentence for a process that a cgroup's limit ended: what the heap may take of it. Empty if it
// runs in no such runtime.
std::string heap_in_cgroup_text(const AdviceFacts&);

}  // namespace oomrec::tools::findings
