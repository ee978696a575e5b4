// The rows of the live view: current holders by stack, by function or by file.
//
// `own` is the memory of the stacks that have the function as their subject (subjects_of()), so
// memory that a library allocates on behalf of the function counts as the function's. `total` is
// the memory of all stacks that contain it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/views/top/live_holders.h"
#include "tools/views/top/paths.h"

namespace oomrec::tools::views {

enum class By : std::uint8_t { stack, function, file };
inline constexpr std::string_view kByNames[] = {"stack", "function", "file"};

enum class SortBy : std::uint8_t { own, total, count, growth };
inline constexpr std::string_view kSortNames[] = {"own", "total", "count", "growth"};

// The user's choice of rows, order and memory.
struct Choice {
  By by = By::stack;
  SortBy sort = SortBy::own;
  recording::Frames frames = recording::Frames::both;
  std::optional<Space> space;          // nullopt: all that add up
  std::optional<std::uint16_t> group;  // of threads: LiveHolders::groups(); nullopt: all
  std::string search;  // only rows with a frame that contains it, in any case; empty: all
  bool operator==(const Choice&) const = default;
};

struct Row {
  std::uint32_t key = 0;  // PathId, or number of a function or a file
  PathId path = 0;        // its stack with the most memory
  std::uint64_t own = 0, total = 0, count = 0;
  std::uint64_t weight = 0;  // of own, what rows are ranked by: what of it is resident
  double growth = 0;         // of own, bytes per second
};

struct Rows {
  std::vector<Row> rows;     // the largest first, at most as many as requested
  std::size_t matching = 0;  // number of rows that match, also of those beyond
  std::uint64_t held = 0;    // bytes of all counted holders, also of rows that do not match
};

// Keeps the names of stacks from call to call.
class Table {
 public:
  Table(recording::Stacks& stacks, recording::Locations& locations);

  Rows rows(const LiveHolders& holders, const Choice& choice, std::size_t most);

  const Paths& paths() const { return *paths_; }
  const Names& names() const { return names_; }

 private:
  void choose(const Choice& choice);
  void name_paths(const LiveHolders& holders);
  void search_paths(const std::string& text);
  bool matches(const recording::Location& location) const;
  void sum_by_stack(const LiveHolders& holders);
  void sum_by_name(const LiveHolders& holders, By by);
  bool is_left_out(const Row& row) const;
  bool is_counted(const LiveHolder& holder) const;

  recording::Stacks& stacks_;
  recording::Locations& locations_;
  Names names_;
  Choice choice_;
  std::unique_ptr<Paths> paths_;
  std::vector<PathId> path_of_;         // by holder
  std::vector<std::uint64_t> through_;  // held by the path and all paths inside it
  std::vector<std::uint32_t> row_of_;   // by path: 1 + its index in all_; 0: none
  std::vector<Row> all_;                // unordered; kept to reuse its memory
  std::string searched_;
  std::vector<bool> location_matches_, path_matches_;
  std::uint64_t forgotten_ = 0;  // LiveHolders::forgotten(), of path_of_
};

}  // namespace oomrec::tools::views
