// The rows of the live view: who holds memory now, by stack, by function or by file.
//
// `own` is what is held by stacks that are known by the function (subjects_of()): its own, where
// memory is asked for on its behalf by a library. `total`: by all stacks that run through it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/views/top/holders_now.h"
#include "tools/views/top/paths.h"

namespace oomrec::tools::views {

enum class By : std::uint8_t { stack, function, file };
inline constexpr std::string_view kByNames[] = {"stack", "function", "file"};

enum class SortBy : std::uint8_t { own, total, count, growth };
inline constexpr std::string_view kSortNames[] = {"own", "total", "count", "growth"};

// What is looked at, and how.
struct Choice {
  By by = By::stack;
  SortBy sort = SortBy::own;
  Frames frames = Frames::merged;
  std::optional<Space> space;          // nothing: all that add up
  std::optional<std::uint16_t> group;  // of threads: HoldersNow::groups(); nothing: all
  std::string search;  // rows with a frame that holds this, whatever its case; empty: all
  bool operator==(const Choice&) const = default;
};

struct Row {
  std::uint32_t key = 0;  // PathId, or number of a function or a file
  PathId path = 0;        // of its stacks the one that holds most
  std::uint64_t own = 0, total = 0, count = 0;
  double growth = 0;  // of own, bytes a second
};

struct Rows {
  std::vector<Row> rows;   // the largest first, no more than were asked for
  std::size_t there = 0;   // of all that match
  std::uint64_t held = 0;  // by all holders that were counted, whether their row matches or not
};

// Keeps the names of stacks from one look to the next.
class Table {
 public:
  Table(recording::Stacks& stacks, recording::Places& places);

  Rows rows(const HoldersNow& holders, const Choice& choice, std::size_t most);

  const Paths& paths() const { return *paths_; }
  const Names& names() const { return names_; }

 private:
  void choose(const Choice& choice);
  void name_paths(const HoldersNow& holders);
  void search_paths(const std::string& text);
  bool matches(const recording::Place& place) const;
  void sum_by_stack(const HoldersNow& holders);
  void sum_by_name(const HoldersNow& holders, By by);
  bool is_left_out(const Row& row) const;
  bool is_counted(const HolderNow& holder) const;

  recording::Stacks& stacks_;
  recording::Places& places_;
  Names names_;
  Choice choice_;
  std::unique_ptr<Paths> paths_;
  std::vector<PathId> path_of_;         // by holder
  std::vector<std::uint64_t> through_;  // held by path and by all further in
  std::vector<std::uint32_t> row_of_;   // by path: 1 + its index in all_; 0: none
  std::vector<Row> all_;                // in no order; kept, for it is large
  std::string searched_;
  std::vector<bool> place_matches_, path_matches_;
};

}  // namespace oomrec::tools::views
