// Prints the history in a recording as JSON: recorded_history RECORDING. Holders are keyed by the
// function that names them.
//
// Driven by tests/integration/test_history.py: programs know what they held, and when.
#include <fmt/format.h>

#include "tools/base/error.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/recording/reading/checkpoints.h"
#include "tools/recording/reading/timeline.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

class Names {
 public:
  explicit Names(const recording::Recording& recording)
      : locations_(recording, {}), stacks_(recording, locations_) {
    for (const recording::HolderFigures& row : recording.holders()) {
      if (row.entry >= stack_of_.size()) stack_of_.resize(row.entry + 1);
      stack_of_[row.entry] = stacks_.of_node(row.node);
    }
    subjects_ = recording::subjects_of(stacks_, locations_);
  }
  std::string of(std::uint32_t holder) const {
    return printable(locations_[subjects_[stack_of_.at(holder)]].function);
  }

 private:
  recording::Locations locations_;
  recording::Stacks stacks_;
  std::vector<recording::StackId> stack_of_;
  std::vector<recording::LocationId> subjects_;
};

Json held(const Names& names, const recording::Checkpoint& checkpoint) {
  Json by_function = Json::object();
  for (const recording::CheckpointRow& row : checkpoint.largest) {
    Json& bytes = by_function[names.of(row.holder)];
    bytes = (bytes.is_null() ? 0 : bytes.get<std::uint64_t>()) + row.live_bytes;
  }
  return by_function;
}

Json as_json(const recording::Recording& recording) {
  const Names names{recording};
  Json checkpoints = Json::array(), marks = Json::array(), holders = Json::array();
  for (const recording::Checkpoint& checkpoint : recording::checkpoints_of(recording))
    checkpoints.push_back({{"time_ns", checkpoint.time_ns}, {"held", held(names, checkpoint)}});
  const recording::Timeline timeline = recording::timeline_of(recording);
  for (const recording::TimeMark& mark : timeline.marks)
    marks.push_back({{"time_ns", mark.time_ns}, {"text", printable(mark.text)}});
  std::vector<recording::HolderFigures> rows = recording.holders();
  recording.add_ages(rows);
  for (const recording::HolderFigures& row : rows) {
    holders.push_back({{"function", names.of(row.entry)},
                       {"live_bytes", row.live_bytes},
                       {"total_count", row.total_count},
                       {"temporary_count", row.temporary_count},
                       {"oldest_ns", row.oldest_ns ? Json(*row.oldest_ns) : Json()}});
  }
  return {{"pid", recording.header().pid},
          {"start_ns", recording.header().start_monotonic_ns},
          {"moments", timeline.moments.size()},
          {"checkpoints", checkpoints},
          {"marks", marks},
          {"holders", holders}};
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  try {
    fmt::print("{}\n", as_json(recording::Recording{words[1]}).dump());
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
