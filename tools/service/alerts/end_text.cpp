#include "tools/service/alerts/end_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

// The number of "exited 3" and "signal 9"; nothing where it is another word.
std::optional<int> number_after(std::string_view outcome, OutcomeKind kind) {
  const std::vector<std::string_view> words = split(outcome, ' ');
  int number = 0;
  if (words.size() != 2 || words[0] != name_of(kind)) return std::nullopt;
  const char* const end = words[1].data() + words[1].size();
  const auto [stopped, error] = std::from_chars(words[1].data(), end, number);
  return error == std::errc{} && stopped == end ? std::optional{number} : std::nullopt;
}

std::string how(std::string_view outcome, VerdictCode verdict) {
  if (verdict == VerdictCode::cgroup_oom_kill || verdict == VerdictCode::system_oom_kill)
    return "was killed by the kernel";
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
  switch (verdict) {
    case VerdictCode::soft_limit:
      return " after a refusal at its soft limit";
    case VerdictCode::address_space_limit:
      return " after a refusal at its limit of address space";
    case VerdictCode::data_limit:
      return " after a refusal at its limit of data";
    case VerdictCode::request_too_large:
      return " after a request that was too large";
    case VerdictCode::mapping_failed:
      return " after a mapping was refused";
    case VerdictCode::simulated:
      return " after a simulated refusal";
    case VerdictCode::null_dereference:
      return " when it used the NULL of a refused request";
    case VerdictCode::uncaught_bad_alloc:
      return " after a bad_alloc that nobody caught";
    case VerdictCode::exception:
      return " after an exception for lack of memory";
    case VerdictCode::device_out_of_memory:
      return " after a GPU had no memory left for it";
    case VerdictCode::device_limit:
      return " after a refusal at its limit of a GPU's memory";
    case VerdictCode::device_fragmentation:
      return " after a GPU had no free piece that was large enough";
    case VerdictCode::cgroup_oom_kill:
      return ": its memory cgroup was at its limit";
    case VerdictCode::system_oom_kill:
      return ": the machine had no memory left";
    case VerdictCode::killed_near_limit:
      return " near a limit of its memory";
    case VerdictCode::terminated_under_pressure:
      return " when memory was short";
    case VerdictCode::shared_memory_full:
      return " for want of shared memory";
    case VerdictCode::child_killed:
      return " after its worker had run out of memory";
    default:
      return " after memory was refused";
  }
}

}  // namespace

std::string end_text(std::string_view outcome, VerdictCode verdict) {
  return how(outcome, verdict) + std::string{why(verdict)};
}

}  // namespace oomrec::tools::service
