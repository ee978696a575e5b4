// Privileges that exempt a process from a limit.
#pragma once

#include <cstdint>
#include <string_view>

namespace oomrec::limit {

// The effective capabilities in the text of /proc/self/status.
std::uint64_t effective_capabilities(std::string_view status) noexcept;

// Whether this is the machine's initial user namespace: in another one root has no privileges over
// the machine.
bool is_in_initial_namespace() noexcept;

}  // namespace oomrec::limit
