#include "tools/bundles/recover/largest_holder.h"

#include <algorithm>
#include <vector>

#include "tools/recording/analysis/stacks.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::bundles {
namespace {

// The most informative line of a stack: the program's own, else the innermost. Columns are
// collapsed to single spaces, for use in a sentence.
std::string line_of(const std::vector<recording::LocationId>& stack,
                    const recording::Locations& locations) {
  const std::vector<recording::Interest> interest = recording::interests(stack, locations);
  const auto most = std::min_element(interest.begin(), interest.end());
  if (most == interest.end()) return {};
  std::string text = recording::location_text(
      locations[stack[static_cast<std::size_t>(most - interest.begin())]], locations, kColumns);
  const auto is_second_blank = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), is_second_blank), text.end());
  return text;
}

}  // namespace

std::optional<LargestHolder> largest_holder_of(const Source& source) {
  std::vector<recording::HolderFigures> holders = source.recording->holders();
  std::erase_if(holders, [](const recording::HolderFigures& row) {
    return row.api == Api::inherited || !is_additive(row.space);
  });
  recording::Stacks stacks{*source.recording, *source.locations,
                           recording::frames_of(*source.recording)};
  const std::vector<recording::StackSum> sums = recording::summed_over_spaces(
      recording::merged(holders, stacks, recording::At::end, recording::Recursion::collapsed),
      stacks);
  if (sums.empty()) return std::nullopt;
  const recording::StackFigures& largest = sums.front().figures;
  return LargestHolder{largest.bytes, line_of(stacks.locations(largest.stack), *source.locations)};
}

}  // namespace oomrec::tools::bundles
