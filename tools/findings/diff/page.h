// A difference as text and as JSON (docs/commands/diff.md).
#pragma once

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"
#include "tools/findings/diff/difference.h"
#include "tools/sections/resident_memory.h"

namespace oomrec::tools::findings {

struct DiffStyle {
  std::string at, space;   // the words of --at and --space
  unsigned top = 0;        // number of changes; 0: up to 10, of at least 1 % of the largest
  bool full = false;       // every frame
  bool by_chance = false;  // also changes that are not significant
};

class DiffPage {
 public:
  DiffPage(const bundles::Source& before, const bundles::Source& after, recording::At at,
           std::optional<Space> only);

  const Difference& difference() const { return difference_; }
  Json json(const DiffStyle& style) const;
  void print(const DiffStyle& style, const Terminal& terminal) const;

 private:
  const recording::Location& location_of(const FunctionChange& change,
                                         const recording::Locations*& locations) const;
  // A row of the account of resident memory.
  struct KindChange {
    sections::ResidentKindName kind;
    std::uint64_t before = 0, after = 0;

    std::int64_t growth() const {
      return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
    }
  };
  // At the end, what grew most first; empty: one side's pages were never looked at.
  std::vector<KindChange> resident_memory(const DiffStyle& style) const;
  Json resident_memory_json(const DiffStyle& style) const;
  void print_resident_memory(const DiffStyle& style, const Terminal& terminal) const;
  void print_total(const DiffStyle& style, const Terminal& terminal) const;
  void print_functions(const DiffStyle& style, const Terminal& terminal) const;
  void print_stacks(const DiffStyle& style, const Terminal& terminal) const;
  std::vector<std::string> notes(const DiffStyle& style) const;

  const bundles::Source &before_, &after_;
  recording::Stacks stacks_before_, stacks_after_;
  const Difference difference_;
};

}  // namespace oomrec::tools::findings
