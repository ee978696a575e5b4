// What was found, as people read it and as JSON (docs/commands/leaks.md).
#pragma once

#include "tools/bundles/source.h"
#include "tools/leaks/detect.h"
#include "tools/leaks/processes.h"
#include "tools/leaks/severity.h"
#include "tools/print/stack.h"

namespace oomrec::tools {

// All that is said of one recording. Refers to what it was made of.
class LeakReport {
 public:
  explicit LeakReport(const Source& source);

  const Leaks& leaks() const { return leaks_; }
  Json json(std::size_t top) const;
  void print(std::size_t top, bool full, const Terminal& terminal) const;

 private:
  Json leak_json(const Leak& leak) const;
  Json process_json(const ProcessLeaks& process) const;
  void print_summary(const Terminal& terminal) const;
  void print_leak(std::size_t number, const Leak& leak, const StackStyle& style) const;
  void print_devices(const Terminal& terminal) const;
  void print_processes(const Terminal& terminal) const;

  const Source& source_;
  Stacks stacks_;
  Leaks leaks_;
  std::optional<Reach> reach_;
  std::vector<ProcessLeaks> processes_;
};

}  // namespace oomrec::tools
