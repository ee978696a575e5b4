#include "tools/print/holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

constexpr std::size_t kMostHolders = 10;
constexpr double kLeastShare = 0.01;

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// How many of the rows are shown where nobody said how many: those with 1 % of the bytes or more,
// and the first in any case.
std::size_t that_matter(const std::vector<recording::StackFigures>& rows, std::uint64_t whole) {
  std::size_t count = std::min<std::size_t>(rows.size(), 1);
  while (count < std::min(rows.size(), kMostHolders) &&
         share_of(rows[count].bytes, whole) >= kLeastShare) {
    ++count;
  }
  return count;
}

std::string holder_text(std::size_t number, const recording::StackFigures& row, double share,
                        const std::string& stack, const Terminal& terminal) {
  const std::string figures =
      fmt::format("{}{} in {} ({})", row.estimated ? "about " : "", size_text(row.bytes),
                  plural(row.count, "block", "blocks"), percent_text(share));
  return fmt::format("  {:>2}  {}  {}\n{}", number, terminal.paint(Colour::yellow, figures),
                     name_of(row.space), stack);
}

struct Layer {
  std::string_view heading;
  bool (*has)(Space);
};
constexpr Layer kLayers[] = {
    {"holders, the largest first", adds_up},
    {"PyTorch's tensors, inside what the spaces above hold",
     [](Space space) { return space == Space::torch; }},
    {"address space and other processes' memory that is mapped, no memory of its own",
     [](Space space) { return space == Space::cuda_va || space == Space::hip_va; }},
};

}  // namespace

std::uint64_t HolderGroup::bytes() const {
  std::uint64_t bytes = 0;
  for (const recording::StackFigures& row : rows) bytes += row.bytes;
  return bytes;
}

std::vector<HolderGroup> grouped(const std::vector<recording::StackFigures>& rows) {
  std::vector<HolderGroup> groups;
  for (const Layer& layer : kLayers) {
    HolderGroup group{layer.heading, {}};
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(group.rows),
                 [&](const recording::StackFigures& row) { return layer.has(row.space); });
    if (groups.empty() || !group.rows.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

std::string holders_text(const HolderGroup& group, const recording::Stacks& stacks,
                         const recording::Places& places, const HoldersStyle& style) {
  const std::vector<recording::StackFigures>& rows = group.rows;
  const std::uint64_t whole = group.bytes();
  const std::size_t shown =
      style.top != 0 ? std::min<std::size_t>(rows.size(), style.top) : that_matter(rows, whole);
  std::string text;
  std::uint64_t rest = whole;
  for (std::size_t i = 0; i < shown; ++i) {
    rest -= rows[i].bytes;
    text += holder_text(i + 1, rows[i], share_of(rows[i].bytes, whole),
                        recording::stack_text(stacks.places(rows[i].stack), places, style.stack),
                        style.stack.terminal);
  }
  if (shown < rows.size()) {
    text += fmt::format("  and {} with {} ({}) together: --top N\n",
                        plural(rows.size() - shown, "smaller holder", "smaller holders"),
                        size_text(rest), percent_text(share_of(rest, whole)));
  }
  return text;
}

Json holders_json(const HolderGroup& group, const recording::Stacks& stacks,
                  const recording::Places& places, std::size_t top) {
  const std::uint64_t whole = group.bytes();
  Json holders = Json::array();
  for (std::size_t i = 0; i < std::min(group.rows.size(), top); ++i) {
    const recording::StackFigures& row = group.rows[i];
    holders.push_back({
        {"space", name_of(row.space)},
        {"bytes", row.bytes},
        {"count", row.count},
        {"share", share_of(row.bytes, whole)},
        {"estimated", row.estimated},
        {"stack", recording::stack_json(stacks.places(row.stack), places)},
    });
  }
  return holders;
}

}  // namespace oomrec::tools::print
