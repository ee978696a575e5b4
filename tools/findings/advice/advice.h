// What to try: small rules over what a recording says, each with one sentence for its reader.
//
// A rule fires on figures and names alone. It says what it saw before it says what may help:
// whoever knows the program better can judge it. What a rule needs is in AdviceFacts, so that a
// test can make it by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/bundles/store/source.h"
#include "tools/findings/leaks/detect.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::findings {

// All that stacks with one subject (statistics.h) hold in spaces that add up.
struct HeldBy {
  std::string subject;                  // "train.py:31 make_batch"
  std::vector<recording::Place> stack;  // of the one that holds most, innermost first
  std::uint32_t holder = 0;             // that one's entry in `holders`
  Space space = Space::heap;            // likewise
  std::uint64_t bytes = 0, count = 0;
  std::optional<Growth> growth;  // where it is one of the leaks (leaks/detect.h)
};

struct AdviceFacts {
  std::vector<HeldBy> held;         // the largest first
  std::uint64_t all_bytes = 0;      // of all holders, as asked for
  std::uint64_t request_bytes = 0;  // 0: nothing was refused
  std::vector<recording::Place> request_stack;
  std::uint64_t limit_bytes = 0;  // that refused it, or would have; 0: none, or not in bytes
  VerdictCode verdict = VerdictCode::unknown;
  std::vector<recording::DeviceFigures> devices;
  std::uint64_t rss_bytes = 0, host_bytes = 0;  // resident; live on the host, of all spaces
  std::size_t threads = 0;
  bool is_python = false;

  double share_of(std::uint64_t bytes) const;  // of all_bytes
};

struct Hint {
  std::string_view rule;
  std::string text;
  std::optional<std::uint32_t> holder;  // entry in `holders` that it is about
};

struct AdviceRule {
  std::string_view name;
  std::optional<Hint> (*advise)(const AdviceFacts&);  // without the rule's name
};
const std::vector<AdviceRule>& advice_rules();

// `leaks`: of the same recording, whose places the source's are.
AdviceFacts advice_facts(const bundles::Source& source, const Leaks& leaks);
AdviceFacts advice_facts(const bundles::Source& source);

// Of the rules that fire, in their order.
std::vector<Hint> advice_of(const AdviceFacts& facts);

// Of a recording; of a job for the rank that was first in trouble, whose limit and request it was.
std::vector<Hint> advice_for(const bundles::Source& source);

}  // namespace oomrec::tools::findings
