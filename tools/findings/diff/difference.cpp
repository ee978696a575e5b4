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

bool is_included(Space space, std::optional<Space> only) {
  return only ? *only == space : is_additive(space);
}

std::vector<recording::StackFigures> rows_of(const DiffSide& side, recording::At at,
                                             std::optional<Space> only) {
  std::vector<recording::HolderFigures> holders = side.recording.holders();
  std::erase_if(holders,
                [&](const recording::HolderFigures& row) { return !is_included(row.space, only); });
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

// Groups the rows of both sides whose stacks are equal at one level. A group may have rows of one
// side only.
class MatchedRows {
 public:
  MatchedRows(recording::NameLevel level, const DiffSide& before, const DiffSide& after)
      : names_(level),
        before_{before.stacks, before.locations, names_},
        after_{after.stacks, after.locations, names_} {}

  void add_before(const recording::StackFigures& row) {
    row_of(before_.of(row.stack), row).before.push_back(row);
  }
  void add_after(const recording::StackFigures& row) {
    row_of(after_.of(row.stack), row).after.push_back(row);
  }

  struct Row {
    std::vector<recording::StackFigures> before, after;
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Row& row_of(recording::CommonStack stack, const recording::StackFigures& row) {
    const std::uint64_t key = std::uint64_t{stack} << 8 | static_cast<std::uint64_t>(row.space);
    const auto [at, is_new] = index_.try_emplace(key, rows_.size());
    if (is_new) rows_.emplace_back();
    return rows_[at->second];
  }

  recording::CommonNames names_;
  recording::SideStacks before_, after_;
  std::unordered_map<std::uint64_t, std::size_t> index_;  // in rows_, by stack and space
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

StackChange change_of(const MatchedRows::Row& row, Match match) {
  StackChange change;
  change.space = (row.before.empty() ? row.after : row.before).front().space;
  change.match = row.before.empty() || row.after.empty() ? Match::none : match;
  change.before = sum_of(row.before, change.stack_before, change.estimated);
  change.after = sum_of(row.after, change.stack_after, change.estimated);
  return change;
}

// Matches stacks by location first, then the remaining ones by symbol. The rest has no counterpart.
std::vector<StackChange> match_stacks(const std::vector<recording::StackFigures>& before,
                                      const std::vector<recording::StackFigures>& after,
                                      const DiffSide& first, const DiffSide& second) {
  std::vector<StackChange> changes;
  MatchedRows by_location{recording::NameLevel::location, first, second};
  for (const recording::StackFigures& row : before) by_location.add_before(row);
  for (const recording::StackFigures& row : after) by_location.add_after(row);
  MatchedRows by_symbol{recording::NameLevel::symbol, first, second};
  for (const MatchedRows::Row& row : by_location.rows()) {
    if (!row.before.empty() && !row.after.empty()) {
      changes.push_back(change_of(row, Match::location));
      continue;
    }
    for (const recording::StackFigures& one : row.before) by_symbol.add_before(one);
    for (const recording::StackFigures& one : row.after) by_symbol.add_after(one);
  }
  for (const MatchedRows::Row& row : by_symbol.rows())
    changes.push_back(change_of(row, Match::symbol));
  return changes;
}

template <class Row>
void sort_by_growth(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.growth() != b.growth() ? a.growth() > b.growth() : a.after.bytes > b.after.bytes;
  });
}

void set_by_chance(Change& change, double sample_bytes) {
  change.by_chance = change.estimated && change.growth() != 0 &&
                     !is_significant(static_cast<double>(change.before.bytes),
                                     static_cast<double>(change.after.bytes), sample_bytes);
}

class Functions {
 public:
  Functions(const DiffSide& before, const DiffSide& after)
      : before_(before),
        after_(after),
        subjects_before_(recording::subjects_of(before.stacks, before.locations)),
        subjects_after_(recording::subjects_of(after.stacks, after.locations)) {}

  void add_before(const recording::StackFigures& row) {
    const recording::LocationId location = subjects_before_[row.stack];
    Function& function = function_of(before_.locations[location], before_.locations);
    Line& line = function.lines[before_.locations[location].line];
    line.location_before = location;
    line.growth -= static_cast<std::int64_t>(row.bytes);
    take(function.change, function.change.before, row);
  }
  void add_after(const recording::StackFigures& row) {
    const recording::LocationId location = subjects_after_[row.stack];
    Function& function = function_of(after_.locations[location], after_.locations);
    Line& line = function.lines[after_.locations[location].line];
    line.location_after = location;
    line.growth += static_cast<std::int64_t>(row.bytes);
    take(function.change, function.change.after, row);
  }

  std::vector<FunctionChange> changes() const {
    std::vector<FunctionChange> rows;
    for (const auto& [name, function] : by_name_) {
      const Line& line = most_relevant_line(function);
      rows.push_back(function.change);
      rows.back().location_before = line.location_before;
      rows.back().location_after = line.location_after;
    }
    return rows;
  }

 private:
  struct Line {
    std::int64_t growth = 0;
    recording::LocationId location_before = 0, location_after = 0;
  };
  struct Function {
    FunctionChange change;
    std::map<std::uint32_t, Line> lines;
  };

  // The line that grew most; if the function shrank, the line that shrank most.
  static const Line& most_relevant_line(const Function& function) {
    const bool shrank = function.change.growth() < 0;
    return std::max_element(function.lines.begin(), function.lines.end(),
                            [shrank](const auto& a, const auto& b) {
                              return shrank ? a.second.growth > b.second.growth
                                            : a.second.growth < b.second.growth;
                            })
        ->second;
  }

  Function& function_of(const recording::Location& location,
                        const recording::Locations& locations) {
    return by_name_[names_.of(location, locations)];
  }
  static void take(FunctionChange& change, Amount& side, const recording::StackFigures& row) {
    add(side, {row.bytes, row.count});
    change.estimated = change.estimated || row.estimated;
  }

  const DiffSide &before_, &after_;
  const std::vector<recording::LocationId> subjects_before_, subjects_after_;
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
  return match == Match::location ? "place" : match == Match::symbol ? "symbol" : "none";
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
    if (!is_included(change.space, only)) continue;
    add(found.total.before, change.before);
    add(found.total.after, change.after);
  }
  // The spaces may have had their peaks at different times: their sum is not the total peak.
  if (at == recording::At::peak && !only) {
    found.total.before.bytes = before.recording.peak_bytes();
    found.total.after.bytes = after.recording.peak_bytes();
  }

  const std::vector<recording::StackFigures> rows_before = rows_of(before, at, only);
  const std::vector<recording::StackFigures> rows_after = rows_of(after, at, only);
  if (only && !has_totals(*only)) {  // then they are those of the holders
    for (const recording::StackFigures& row : rows_before)
      add(found.total.before, {row.bytes, row.count});
    for (const recording::StackFigures& row : rows_after)
      add(found.total.after, {row.bytes, row.count});
    SpaceChange change;
    change.space = *only;
    change.before = found.total.before;
    change.after = found.total.after;
    found.spaces.push_back(change);
  }
  found.stacks = match_stacks(rows_before, rows_after, before, after);
  Functions functions{before, after};
  for (const recording::StackFigures& row : rows_before) functions.add_before(row);
  for (const recording::StackFigures& row : rows_after) functions.add_after(row);
  found.functions = functions.changes();

  const auto sample_bytes = static_cast<double>(
      std::max(before.recording.header().interval_bytes, after.recording.header().interval_bytes));
  for (StackChange& change : found.stacks) set_by_chance(change, sample_bytes);
  for (FunctionChange& change : found.functions) set_by_chance(change, sample_bytes);
  sort_by_growth(found.stacks);
  sort_by_growth(found.functions);
  return found;
}

}  // namespace oomrec::tools::findings
