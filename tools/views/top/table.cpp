#include "tools/views/top/table.h"

#include <algorithm>

#include "tools/recording/stack_text/stack_text.h"
#include "tools/views/screen/chooser.h"
#include "tools/views/top/figures.h"

namespace oomrec::tools::views {
namespace {

void add(Row& row, const LiveHolder& holder) {
  row.own += holder.live_bytes;
  row.weight += holder.weight_bytes;
  row.count += holder.live_count;
  row.growth += holder.growth;
}

}  // namespace

Table::Table(recording::Stacks& stacks, recording::Locations& locations)
    : stacks_(stacks),
      locations_(locations),
      names_(locations),
      paths_(std::make_unique<Paths>(stacks, names_, choice_.frames)) {}

void Table::choose(const Choice& choice) {
  if (choice.frames != choice_.frames) {
    paths_ = std::make_unique<Paths>(stacks_, names_, choice.frames);
    path_of_.clear();
    path_matches_.clear();
  }
  choice_ = choice;
}

bool Table::is_counted(const LiveHolder& holder) const {
  const bool in_space = choice_.space ? holder.space == *choice_.space : is_additive(holder.space);
  return in_space && holder.node != 0 && (!choice_.group || holder.group == *choice_.group);
}

void Table::name_paths(const LiveHolders& holders) {
  if (holders.forgotten() != forgotten_) {
    forgotten_ = holders.forgotten();
    stacks_.forget_numbers();
    path_of_.clear();
  }
  path_of_.resize(holders.rows().size(), kUnresolved);
  for (std::size_t i = 1; i < path_of_.size(); ++i) {
    const std::uint32_t node = holders.rows()[i].node;
    if (path_of_[i] == kUnresolved && node != 0) path_of_[i] = paths_->of(stacks_.of_node(node));
  }
}

bool Table::matches(const recording::Location& location) const {
  return contains_ignoring_case(recording::location_text(location, locations_), searched_) ||
         contains_ignoring_case(location.file, searched_);
}

// Matches each location and each path against a text once.
void Table::search_paths(const std::string& text) {
  if (text != searched_) {
    location_matches_.clear();
    path_matches_.clear();
    searched_ = text;
  }
  if (text.empty()) return;
  for (std::size_t id = location_matches_.size(); id < locations_.size(); ++id)
    location_matches_.push_back(id != 0 &&
                                matches(locations_[static_cast<recording::LocationId>(id)]));
  for (std::size_t path = path_matches_.size(); path < paths_->size(); ++path) {
    const Paths::Entry& entry = (*paths_)[static_cast<PathId>(path)];
    path_matches_.push_back(path != 0 &&
                            (path_matches_[entry.parent] || location_matches_[entry.location]));
  }
}

void Table::sum_by_stack(const LiveHolders& holders) {
  all_.clear();
  row_of_.assign(paths_->size(), 0);
  for (std::size_t i = 1; i < holders.rows().size(); ++i) {
    const LiveHolder& holder = holders.rows()[i];
    if (!is_counted(holder)) continue;
    const PathId path = path_of_[i];
    std::uint32_t& number = row_of_[path];
    if (number == 0) {
      all_.push_back({path, path, 0, 0, 0, 0, 0});
      number = static_cast<std::uint32_t>(all_.size());
    }
    Row& row = all_[number - 1];
    add(row, holder);
    row.total = row.own;
  }
}

void Table::sum_by_name(const LiveHolders& holders, By by) {
  const bool by_function = by == By::function;
  const auto key_of = [&](recording::LocationId location) {
    return by_function ? names_.function_of(location) : names_.file_of(location);
  };
  through_.assign(paths_->size(), 0);
  names_.function_of(
      static_cast<recording::LocationId>(locations_.size() - 1));  // adds all of them
  all_.assign(by_function ? names_.functions() : names_.files(), {});
  std::vector<std::uint64_t> most(all_.size());
  for (std::size_t i = 1; i < holders.rows().size(); ++i) {
    const LiveHolder& holder = holders.rows()[i];
    if (!is_counted(holder)) continue;
    const PathId path = path_of_[i];
    through_[path] += holder.live_bytes;
    const std::uint32_t key = key_of((*paths_)[path].subject);
    add(all_[key], holder);
    if (all_[key].path != 0 && holder.weight_bytes <= most[key]) continue;
    all_[key].path = path;
    most[key] = holder.weight_bytes;
  }
  for (auto path = static_cast<PathId>(through_.size() - 1); path > 0; --path) {
    if (through_[path] == 0) continue;
    const Paths::Entry& entry = (*paths_)[path];
    through_[entry.parent] += through_[path];
    if (!(by_function ? entry.outermost_of_function : entry.outermost_of_file)) continue;
    Row& row = all_[key_of(entry.location)];
    row.total += through_[path];
    if (row.path == 0) row.path = path;
  }
  all_[0].total = all_[0].own;  // stacks without a frame
  for (std::uint32_t key = 0; key < all_.size(); ++key) all_[key].key = key;
}

bool Table::is_left_out(const Row& row) const {
  if (row.own == 0 && row.total == 0 && row.count == 0 && row.growth == 0) return true;
  if (choice_.search.empty()) return false;
  if (choice_.by == By::stack) return !path_matches_[row.path];
  return choice_.by == By::function ? !location_matches_[names_.location_of_function(row.key)]
                                    : !contains_ignoring_case(names_.file(row.key), choice_.search);
}

Rows Table::rows(const LiveHolders& holders, const Choice& choice, std::size_t most) {
  choose(choice);
  name_paths(holders);
  search_paths(choice.search);
  if (choice.by == By::stack)
    sum_by_stack(holders);
  else
    sum_by_name(holders, choice.by);
  Rows result;
  for (const LiveHolder& holder : holders.rows())
    if (is_counted(holder)) result.held += holder.live_bytes;
  std::erase_if(all_, [this](const Row& row) { return is_left_out(row); });
  result.matching = all_.size();
  const Figure& figure = figures()[static_cast<std::size_t>(choice.sort)];
  const auto larger = [&](const Row& a, const Row& b) {
    const double of_a = figure.sort_value(a);
    const double of_b = figure.sort_value(b);
    if (of_a != of_b) return of_a > of_b;
    return a.total != b.total ? a.total > b.total : a.key < b.key;
  };
  const auto end = all_.begin() + static_cast<std::ptrdiff_t>(std::min(most, all_.size()));
  std::partial_sort(all_.begin(), end, all_.end(), larger);
  result.rows.assign(all_.begin(), end);
  return result;
}

}  // namespace oomrec::tools::views
