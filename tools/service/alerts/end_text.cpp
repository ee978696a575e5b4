#include "tools/service/alerts/end_text.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "common/verdict/kinds.h"
#include "tools/base/number.h"
#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

// The number in "exited 3" or "signal 9"; empty if the outcome is of another kind.
std::optional<int> number_after(std::string_view outcome, OutcomeKind kind) {
  const std::vector<std::string_view> words = split(outcome, ' ');
  const bool has_one = words.size() == 2 && words[0] == name_of(kind);
  return has_one ? parse_number<int>(words[1]) : std::nullopt;
}

std::string how(std::string_view outcome, VerdictCode verdict) {
  if (verdict::is_kernel_kill(verdict)) return "was killed by the kernel";
  if (const auto code = number_after(outcome, OutcomeKind::exited))
    return fmt::format("ended with exit code {}", *code);
  if (const auto signal = number_after(outcome, OutcomeKind::signal)) {
    const char* const name = sigabbrev_np(*signal);
    return name != nullptr ? fmt::format("was ended by SIG{}", name)
                           : fmt::format("was ended by signal {}", *signal);
  }
  return "is gone";
}

std::string_view why(VerdictCode verdict) {
  const std::string_view words = verdict::kind_of(verdict).end;
  return words.empty() ? " after memory was refused" : words;
}

}  // namespace

std::string end_text(std::string_view outcome, VerdictCode verdict,
                     std::optional<Certainty> certainty) {
  std::string text = how(outcome, verdict) + std::string{why(verdict)};
  if (certainty && *certainty != Certainty::proven)
    text += fmt::format(" ({}, not proven)", name_of(*certainty));
  return text;
}

}  // namespace oomrec::tools::service
