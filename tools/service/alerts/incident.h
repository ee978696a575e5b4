// What an alert is about, in words and figures.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::service {

enum class Rule : std::uint8_t { near_limit, failure, death, pressure, device_nearly_full };
inline constexpr auto kRuleNames = std::to_array<std::string_view>(
    {"near_limit", "failure", "death", "pressure", "device_nearly_full"});

// Something that one of the rules is about, of one process.
struct Concern {
  Rule rule = Rule::near_limit;
  std::uint64_t realtime_ns = 0;  // since 1970
  std::string program;
  std::string rank;  // empty: it has none
  int pid = 0;
  std::string command_line;
  std::string text;    // one sentence
  std::string bundle;  // empty: there is none
  Json figures = Json::object();
};

struct Alert {
  Concern first;
  std::vector<Concern> also;   // of the same rule, since its last alert
  std::uint64_t left_out = 0;  // there were still more
};

// What a command or a webhook is given: docs/json.md.
Json json_of(const Alert& alert);

}  // namespace oomrec::tools::service
