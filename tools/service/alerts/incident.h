// Incidents and the alerts that report them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/base/json.h"

namespace oomrec::tools::service {

enum class Rule : std::uint8_t { near_limit, failure, death, pressure, device_nearly_full };
inline constexpr auto kRuleNames = std::to_array<std::string_view>(
    {"near_limit", "failure", "death", "pressure", "device_nearly_full"});

// One rule that applies to one process.
struct Incident {
  Rule rule = Rule::near_limit;
  std::uint64_t realtime_ns = 0;  // since 1970
  std::string program;
  std::string rank;  // empty: none
  int pid = 0;
  std::string command_line;
  std::string text;    // one sentence
  std::string bundle;  // empty: none
  Json figures = Json::object();
};

struct Alert {
  Incident first;
  std::vector<Incident> also;  // of the same rule, since its previous alert
  std::uint64_t left_out = 0;  // the number of further incidents
};

// The input of a command or a webhook: docs/json.md.
Json json_of(const Alert& alert);

// Describes in words how a process that died for lack of memory ended.

// "was ended by SIGKILL after a refusal at its soft limit". The outcome and the verdict are
// independent facts: a process may survive a failure and be killed for another reason later.
// `outcome`: as in metadata.json. A verdict that is not proven says so.
std::string end_text(std::string_view outcome, VerdictCode verdict,
                     std::optional<Certainty> certainty = std::nullopt);

}  // namespace oomrec::tools::service
