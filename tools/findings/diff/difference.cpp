#include "tools/findings/diff/difference.h"

#include <algorithm>
#include <cstdlib>
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
  if (sum.resident_bytes) *sum.resident_bytes += part.resident_bytes.value_or(part.bytes);
}

// StackFigures::bytes are what the side's holders weigh.
Amount amount_of(const recording::StackFigures& row) {
  return {row.live_bytes, row.count, row.resident_bytes};
}

// What a stack or function has that the side's recording does not name.
Amount nothing_of(const DiffSide& side, recording::At at) {
  Amount nothing;
  if (at == recording::At::end && side.recording.has_residency()) nothing.resident_bytes = 0;
  return nothing;
}

// How changes are ranked, and what a side has of a stack that it does not name.
struct Ranking {
  bool by_resident;
  Amount none_before, none_after;
};

Ranking ranking_of(const DiffSide& before, const DiffSide& after, recording::At at) {
  Ranking ranking{false, nothing_of(before, at), nothing_of(after, at)};
  ranking.by_resident = ranking.none_before.resident_bytes && ranking.none_after.resident_bytes &&
                        (before.recording.weight() == recording::Weight::resident ||
                         after.recording.weight() == recording::Weight::resident);
  return ranking;
}

// A look sees whole pages, while other threads go on: a resident change alone counts only if it is
// as large as the blocks that are looked at.
void rank(Change& change, const Ranking& ranking) {
  constexpr auto kLeast = static_cast<std::int64_t>(session::kLookBytes);
  const auto resident = change.resident_growth();
  if (!resident || (change.growth() == 0 && std::llabs(*resident) < kLeast)) return;
  change.is_of_resident =
      ranking.by_resident || std::llabs(*resident) > std::llabs(change.growth());
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

Amount sum_of(const std::vector<recording::StackFigures>& rows, Amount sum,
              recording::StackId& largest, bool& estimated) {
  std::uint64_t most = 0;
  for (const recording::StackFigures& row : rows) {
    add(sum, amount_of(row));
    estimated = estimated || row.estimated;
    if (row.bytes >= most) largest = row.stack, most = row.bytes;
  }
  return sum;
}

StackChange change_of(const MatchedRows::Row& row, Match match, const Ranking& ranking) {
  StackChange change;
  change.space = (row.before.empty() ? row.after : row.before).front().space;
  change.match = row.before.empty() || row.after.empty() ? Match::none : match;
  change.before = sum_of(row.before, ranking.none_before, change.stack_before, change.estimated);
  change.after = sum_of(row.after, ranking.none_after, change.stack_after, change.estimated);
  rank(change, ranking);
  return change;
}

// Matches stacks by location first, then the remaining ones by symbol. The rest has no counterpart.
std::vector<StackChange> match_stacks(const std::vector<recording::StackFigures>& before,
                                      const std::vector<recording::StackFigures>& after,
                                      const DiffSide& first, const DiffSide& second,
                                      const Ranking& ranking) {
  std::vector<StackChange> changes;
  MatchedRows by_location{recording::NameLevel::location, first, second};
  for (const recording::StackFigures& row : before) by_location.add_before(row);
  for (const recording::StackFigures& row : after) by_location.add_after(row);
  MatchedRows by_symbol{recording::NameLevel::symbol, first, second};
  for (const MatchedRows::Row& row : by_location.rows()) {
    if (!row.before.empty() && !row.after.empty()) {
      changes.push_back(change_of(row, Match::location, ranking));
      continue;
    }
    for (const recording::StackFigures& one : row.before) by_symbol.add_before(one);
    for (const recording::StackFigures& one : row.after) by_symbol.add_after(one);
  }
  for (const MatchedRows::Row& row : by_symbol.rows())
    changes.push_back(change_of(row, Match::symbol, ranking));
  return changes;
}

template <class Row>
void sort_by_growth(std::vector<Row>& rows) {
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    const std::int64_t of_a = a.ranked_growth(), of_b = b.ranked_growth();
    return of_a != of_b ? of_a > of_b : a.after.bytes > b.after.bytes;
  });
}

void set_by_chance(Change& change, double sample_bytes) {
  const auto is_certain = [&](std::uint64_t before, std::uint64_t after) {
    return is_significant(static_cast<double>(before), static_cast<double>(after), sample_bytes);
  };
  const bool is_certainly_resident =
      change.is_of_resident &&
      is_certain(change.before.resident_bytes.value_or(0), change.after.resident_bytes.value_or(0));
  change.by_chance = change.estimated && change.ranked_growth() != 0 && !is_certainly_resident &&
                     !is_certain(change.before.bytes, change.after.bytes);
}

class Functions {
 public:
  Functions(const DiffSide& before, const DiffSide& after, const Ranking& ranking)
      : before_(before),
        after_(after),
        ranking_(ranking),
        subjects_before_(recording::subjects_of(before.stacks, before.locations)),
        subjects_after_(recording::subjects_of(after.stacks, after.locations)) {}

  void add_before(const recording::StackFigures& row) {
    const recording::LocationId location = subjects_before_[row.stack];
    Function& function = function_of(before_.locations[location], before_.locations);
    Line& line = line_of(function, before_.locations[location]);
    line.location_before = location;
    add(line.change.before, amount_of(row));
    take(function.change, function.change.before, row);
  }
  void add_after(const recording::StackFigures& row) {
    const recording::LocationId location = subjects_after_[row.stack];
    Function& function = function_of(after_.locations[location], after_.locations);
    Line& line = line_of(function, after_.locations[location]);
    line.location_after = location;
    add(line.change.after, amount_of(row));
    take(function.change, function.change.after, row);
  }

  std::vector<FunctionChange> changes() {
    std::vector<FunctionChange> rows;
    for (auto& [name, function] : by_name_) {
      rank(function.change, ranking_);
      for (auto& [number, one] : function.lines) rank(one.change, ranking_);
      const Line& line = most_relevant_line(function);
      rows.push_back(function.change);
      rows.back().location_before = line.location_before;
      rows.back().location_after = line.location_after;
    }
    return rows;
  }

 private:
  struct Line {
    Change change;
    recording::LocationId location_before = 0, location_after = 0;
  };
  struct Function {
    FunctionChange change;
    std::map<std::uint32_t, Line> lines;
  };

  // The line that grew most; if the function shrank, the line that shrank most.
  static const Line& most_relevant_line(const Function& function) {
    const bool shrank = function.change.ranked_growth() < 0;
    return std::ranges::max_element(function.lines,
                                    [shrank](const auto& a, const auto& b) {
                                      const std::int64_t of_a = a.second.change.ranked_growth(),
                                                         of_b = b.second.change.ranked_growth();
                                      return shrank ? of_a > of_b : of_a < of_b;
                                    })
        ->second;
  }

  Function& function_of(const recording::Location& location,
                        const recording::Locations& locations) {
    const auto [at, is_new] = by_name_.try_emplace(names_.of(location, locations));
    if (is_new) begin(at->second.change);
    return at->second;
  }
  Line& line_of(Function& function, const recording::Location& location) {
    const auto [at, is_new] = function.lines.try_emplace(location.line);
    if (is_new) begin(at->second.change);
    return at->second;
  }
  void begin(Change& change) const {
    change.before = ranking_.none_before;
    change.after = ranking_.none_after;
  }
  static void take(FunctionChange& change, Amount& side, const recording::StackFigures& row) {
    add(side, amount_of(row));
    change.estimated = change.estimated || row.estimated;
  }

  const DiffSide &before_, &after_;
  const Ranking& ranking_;
  const std::vector<recording::LocationId> subjects_before_, subjects_after_;
  recording::CommonNames names_{recording::NameLevel::symbol};
  std::map<recording::NameId, Function> by_name_;
};

}  // namespace

std::optional<std::int64_t> Change::resident_growth() const {
  if (!before.resident_bytes || !after.resident_bytes) return std::nullopt;
  return static_cast<std::int64_t>(*after.resident_bytes) -
         static_cast<std::int64_t>(*before.resident_bytes);
}

std::string_view Change::word() const {
  const std::uint64_t was = std::max(before.bytes, before.resident_bytes.value_or(0));
  const std::uint64_t is = std::max(after.bytes, after.resident_bytes.value_or(0));
  if (was == 0 && is != 0) return "new";
  if (was != 0 && is == 0) return "gone";
  return ranked_growth() > 0 ? "grown" : ranked_growth() < 0 ? "shrunk" : "same";
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
      add(found.total.before, {row.live_bytes, row.count});
    for (const recording::StackFigures& row : rows_after)
      add(found.total.after, {row.live_bytes, row.count});
    SpaceChange change;
    change.space = *only;
    change.before = found.total.before;
    change.after = found.total.after;
    found.spaces.push_back(change);
  }
  const Ranking ranking = ranking_of(before, after, at);
  found.stacks = match_stacks(rows_before, rows_after, before, after, ranking);
  Functions functions{before, after, ranking};
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
