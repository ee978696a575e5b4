// A difference as people read it and as JSON (docs/commands/diff.md).
#pragma once

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"
#include "tools/findings/diff/difference.h"

namespace oomrec::tools::findings {

struct DiffStyle {
  std::string at, space;   // the words of --at and --space
  unsigned top = 0;        // so many changes; 0: those with 1 % of the largest or more, 10 at most
  bool full = false;       // every frame
  bool by_chance = false;  // also what chance explains
};

class DiffPage {
 public:
  DiffPage(const bundles::Source& before, const bundles::Source& after, recording::At at,
           std::optional<Space> only);

  const Difference& difference() const { return difference_; }
  Json json(const DiffStyle& style) const;
  void print(const DiffStyle& style, const Terminal& terminal) const;

 private:
  const recording::Place& place_of(const FunctionChange& change,
                                   const recording::Places*& places) const;
  void print_total(const DiffStyle& style, const Terminal& terminal) const;
  void print_functions(const DiffStyle& style, const Terminal& terminal) const;
  void print_stacks(const DiffStyle& style, const Terminal& terminal) const;
  std::vector<std::string> notes(const DiffStyle& style) const;

  const bundles::Source &before_, &after_;
  recording::Stacks stacks_before_, stacks_after_;
  const Difference difference_;
};

}  // namespace oomrec::tools::findings
