#include "tools/findings/diff/difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "tools/findings/leaks/growth.h"
#include "tools/recording/analysis/common_names.h"
#include "tools/recording/analysis/statistics.h"

namespace oomrec::tools::findings {
namespace {

bool counts(Space space, std::optional<Space> only) {
  return only ? *only == space : adds_up(space);
}

std::vector<recording::StackFigures> rows_of(const DiffSide& side, recording::At at,
                                             std::optional<Space> only) {
  std::vector<recording::HolderFigures> holders = side.recording.holders();
  std::erase_if(holders,
                [&](const recording::HolderFigures& row) { return !counts(row.space, only); });
  return recording::merged(holders, side.stacks, at);
}

Amount amount_of(const recording::Recording& recording, Space space, recording::At at) {
  const recording::SpaceTotals totals = recording.totals(space);
  switch (at) {
    case recording::At::end:
      return {totals.live_bytes, totals.live_count};
    case recording::At::peak:
      return {recording.peak_bytes(space), 0};
    case recording::At::ever:
      return {totals.allocated_bytes, totals.allocated_count};
  }
  return {};
}

void add(Amount& sum, const Amount& part) {
  sum.bytes += part.bytes;
  sum.count += part.count;
}

// Rows of both sides that read alike at one level, and those of each side that have no other.
class Joint {
 public:
  Joint(recording::NameLevel level, const DiffSide& before, const DiffSide& after)
      : names_(level),
        before_{before.stacks, before.places, names_},
        after_{after.stacks, after.places, names_} {}

  void add_before(const recording::StackFigures& row) {
    Row& joint = row_of(before_.of(row.stack), row);
    joint.before.push_back(row);
  }
  void add_after(const recording::StackFigures& row) {
    Row& joint = row_of(after_.of(row.stack), row);
    joint.after.push_back(row);
  }

  struct Row {
    std::vector<recording::StackFigures> before, after;
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Row& row_of(recording::CommonStack stack, const recording::StackFigures& row) {
    const std::uint64_t key = std::uint64_t{stack} << 8 | static_cast<std::uint64_t>(row.space);
    const auto [at, is_new] = known_.try_emplace(key, rows_.size());
    if (is_new) rows_.emplace_back();
    return rows_[at->second];
  }

  recording::CommonNames names_;
  recording::SideStacks before_, after_;
  std::unordered_map<std::uint64_t, std::size_t> known_;
  std::vector<Row> rows_;
};

Amount sum_of(const std::vector<recording::StackFigures>& rows, recording::StackId& largest,
              bool& estimated) {
  Amount sum;
  std::uint64_t most = 0;
  for (const recording::StackFigures& row : rows) {
    add(sum, {row.bytes, row.count});
    estimated = estimated || row.estimated;
    if (row.bytes >= most) largest = row.stack, most = row.bytes;
  }
  return sum;
}

StackChange change_of(const Joint::Row& row, Match match) {
  StackChange change;
  change.space = (row.before.empty() ? row.after : row.before).front().space;
  change.match = row.before.empty() || row.after.empty() ? Match::none : match;
  change.before = sum_of(row.before, change.stack_before, change.estimated);
  change.after = sum_of(row.after, change.stack_after, change.estimated);
  return change;
}

// What is left of either side when what reads alike to the line is paired reads alike by symbol, or
// has no counterpart.
std::vector<StackChange> paired(const std::vector<recording::StackFigures>& before,
                                const std::vector<recording::StackFigures>& after,
                                const DiffSide& first, const DiffSide& second) {
  std::vector<StackChange> changes;
  Joint by_place{recording::NameLevel::place, first, second};
  for (const recording::StackFigures& row : before) by_place.add_before(row);
  for (const recording::StackFigures& row : after) by_place.add_after(row);
  Joint by_symbol{recording::NameLevel::symbol, first, second};
  for (const Joint::Row& row : by_place.rows()) {
    if (!row.before.empty() && !row.after.empty()) {
      changes.push_back(change_of(row, Match::place));
      continue;
    }
    for (const recording::StackFigures& one : row.before) by_symbol.add_before(one);
    for (const recording::StackFigures& one : row.after) by_symbol.add_after(one);
  }
  for (const Joint::Row& row : by_symbol.rows()) changes.push_back(change_of(row, Match::symbol));
  return changes;
}

template <class Row>
void sort_by_growth(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.growth() != b.growth() ? a.growth() > b.growth() : a.after.bytes > b.after.bytes;
  });
}

void judge(Change& change, double sample_bytes) {
  change.by_chance = change.estimated && change.growth() != 0 &&
                     !beyond_chance(static_cast<double>(change.before.bytes),
                                    static_cast<double>(change.after.bytes), sample_bytes);
}

class Functions {
 public:
  Functions(const DiffSide& before, const DiffSide& after)
      : before_(before),
        after_(after),
        subjects_before_(recording::subjects_of(before.stacks, before.places)),
        subjects_after_(recording::subjects_of(after.stacks, after.places)) {}

  void add_before(const recording::StackFigures& row) {
    const recording::PlaceId place = subjects_before_[row.stack];
    Function& function = function_of(before_.places[place], before_.places);
    Line& line = function.lines[before_.places[place].line];
    line.place_before = place;
    line.growth -= static_cast<std::int64_t>(row.bytes);
    take(function.change, function.change.before, row);
  }
  void add_after(const recording::StackFigures& row) {
    const recording::PlaceId place = subjects_after_[row.stack];
    Function& function = function_of(after_.places[place], after_.places);
    Line& line = function.lines[after_.places[place].line];
    line.place_after = place;
    line.growth += static_cast<std::int64_t>(row.bytes);
    take(function.change, function.change.after, row);
  }

  std::vector<FunctionChange> changes() const {
    std::vector<FunctionChange> rows;
    for (const auto& [name, function] : by_name_) {
      const Line& line = telling_line(function);
      rows.push_back(function.change);
      rows.back().place_before = line.place_before;
      rows.back().place_after = line.place_after;
    }
    return rows;
  }

 private:
  struct Line {
    std::int64_t growth = 0;
    recording::PlaceId place_before = 0, place_after = 0;
  };
  struct Function {
    FunctionChange change;
    std::map<std::uint32_t, Line> lines;
  };

  // The one that grew most; of a function that shrank, the one that shrank most.
  static const Line& telling_line(const Function& function) {
    const bool shrank = function.change.growth() < 0;
    return std::max_element(function.lines.begin(), function.lines.end(),
                            [shrank](const auto& a, const auto& b) {
                              return shrank ? a.second.growth > b.second.growth
                                            : a.second.growth < b.second.growth;
                            })
        ->second;
  }

  Function& function_of(const recording::Place& place, const recording::Places& places) {
    return by_name_[names_.of(place, places)];
  }
  static void take(FunctionChange& change, Amount& side, const recording::StackFigures& row) {
    add(side, {row.bytes, row.count});
    change.estimated = change.estimated || row.estimated;
  }

  const DiffSide &before_, &after_;
  const std::vector<recording::PlaceId> subjects_before_, subjects_after_;
  recording::CommonNames names_{recording::NameLevel::symbol};
  std::map<recording::NameId, Function> by_name_;
};

}  // namespace

std::string_view Change::word() const {
  if (before.bytes == 0 && after.bytes != 0) return "new";
  if (before.bytes != 0 && after.bytes == 0) return "gone";
  return growth() > 0 ? "grown" : growth() < 0 ? "shrunk" : "same";
}

std::string_view name_of(Match match) {
  return match == Match::place ? "place" : match == Match::symbol ? "symbol" : "none";
}

Difference difference(DiffSide before, DiffSide after, recording::At at,
                      std::optional<Space> only) {
  Difference found;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    SpaceChange change;
    change.space = static_cast<Space>(i);
    change.before = amount_of(before.recording, change.space, at);
    change.after = amount_of(after.recording, change.space, at);
    if (change.before.bytes == 0 && change.after.bytes == 0) continue;
    found.spaces.push_back(change);
    if (!counts(change.space, only)) continue;
    add(found.total.before, change.before);
    add(found.total.after, change.after);
  }
  // Spaces need not have had their peaks at one time.
  if (at == recording::At::peak && !only) {
    found.total.before.bytes = before.recording.peak_bytes();
    found.total.after.bytes = after.recording.peak_bytes();
  }

  const std::vector<recording::StackFigures> rows_before = rows_of(before, at, only);
  const std::vector<recording::StackFigures> rows_after = rows_of(after, at, only);
  found.stacks = paired(rows_before, rows_after, before, after);
  Functions functions{before, after};
  for (const recording::StackFigures& row : rows_before) functions.add_before(row);
  for (const recording::StackFigures& row : rows_after) functions.add_after(row);
  found.functions = functions.changes();

  const auto sample_bytes = static_cast<double>(
      std::max(before.recording.header().interval_bytes, after.recording.header().interval_bytes));
  for (StackChange& change : found.stacks) judge(change, sample_bytes);
  for (FunctionChange& change : found.functions) judge(change, sample_bytes);
  sort_by_growth(found.stacks);
  sort_by_growth(found.functions);
  return found;
}

}  // namespace oomrec::tools::findings
