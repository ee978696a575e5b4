// What the rules about limits share with others: figures of the process' need, and their words.
// Private to this folder.
#pragma once

#include <cstdint>
#include <string>

#include "tools/findings/advice/advice.h"

namespace oomrec::tools::findings {

std::uint64_t with_quarter(std::uint64_t value);

// Rounded up to an eighth of its power of two: a value that a person would choose.
std::uint64_t rounded(std::uint64_t bytes);

// "640M", "3G": as options and container limits take it.
std::string value_text(std::uint64_t bytes);

// What the process is known to have needed at once.
std::uint64_t needed_bytes(const AdviceFacts&);

// "grew by 120.0 MiB a minute"; empty if it did not grow.
std::string growth_text(const AdviceFacts&);

// The same as a sentence, after others: growth reaches any limit.
std::string trend_text(const AdviceFacts&);

// "This machine is too small for it: …"
std::string machine_text(const AdviceFacts&, std::uint64_t bytes);

// verdict_actions.cpp: the action for a verdict without a limit to raise; null: there is none.
using ActionText = std::string (*)(const AdviceFacts&);
ActionText action_for(VerdictCode);

}  // namespace oomrec::tools::findings
