#include "tools/bundles/recover/largest_holder.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "common/text/text.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::bundles {
namespace {

// A frame of the recorder's own is a wrong guess, on a stack of generated code: it says nothing.
bool has_name(const recording::Location& location, const recording::Locations& locations) {
  if (location.kind != recording::Location::Kind::native) return true;
  const std::string& module = locations.module_path(location);
  return !location.function.empty() && !text::base_name(module).starts_with("liboomrec");
}

bool is_unnamed_generated_code(const recording::Location& location,
                               const recording::Locations& locations) {
  return location.kind == recording::Location::Kind::native && location.function.empty() &&
         locations.module_path(location).empty();
}

// The most informative line of a stack: the program's own, else the innermost. An address in a
// stripped program says less than the name of a library's function. Columns are collapsed to single
// spaces, for use in a sentence.
std::string line_of(const std::vector<recording::LocationId>& stack,
                    const recording::Locations& locations) {
  const std::vector<recording::Interest> interest = recording::interests(stack, locations);
  if (interest.empty()) return {};
  const auto rank = [&](std::size_t at) {
    // A note further out than other frames says which are missing.
    const bool is_about_frames =
        at != 0 && locations[stack[at]].kind == recording::Location::Kind::note;
    return std::tuple{is_about_frames, interest[at] == recording::Interest::machinery,
                      !has_name(locations[stack[at]], locations), interest[at],
                      recording::is_library_function(locations[stack[at]])};
  };
  std::size_t most = 0;
  for (std::size_t at = 1; at < stack.size(); ++at)
    if (rank(at) < rank(most)) most = at;
  std::string text = recording::location_text(locations[stack[most]], locations, kColumns);
  // A runtime's function that calls a script says nothing about it, and must not stand for it.
  const auto line = stack.begin() + static_cast<std::ptrdiff_t>(most);
  if (!locations[*line].is_line() &&
      std::any_of(stack.begin(), line, [&](recording::LocationId id) {
        return is_unnamed_generated_code(locations[id], locations);
      }))
    text = fmt::format("code made at run time, called by {}", text);
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
  const bool estimated = source.recording->is_resident_estimated() && largest.estimated;
  return LargestHolder{largest.bytes, estimated,
                       line_of(stacks.locations(largest.stack), *source.locations)};
}

}  // namespace oomrec::tools::bundles
