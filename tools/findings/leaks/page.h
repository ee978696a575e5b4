// Leaks as text and as JSON (docs/commands/leaks.md).
#pragma once

#include "tools/bundles/store/source.h"
#include "tools/findings/leaks/detect.h"
#include "tools/findings/leaks/severity.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::findings {

// The report on one source, which must outlive it.
class LeakReport {
 public:
  explicit LeakReport(const bundles::Source& source);

  const Leaks& leaks() const { return leaks_; }
  Json json(std::size_t top) const;
  void print(std::size_t top, bool full, const Terminal& terminal) const;

 private:
  Json leak_json(const Leak& leak) const;
  Json unsteady_json(const Unsteady& unsteady) const;
  Json process_json(const ProcessLeaks& process) const;
  void print_summary(const Terminal& terminal) const;
  void print_resident_growth() const;
  void print_leak(std::size_t number, const Leak& leak, const recording::StackStyle& style) const;
  void print_unsteady(const Unsteady& unsteady, const recording::StackStyle& style) const;
  void print_devices(const Terminal& terminal) const;
  void print_processes(const Terminal& terminal) const;

  const bundles::Source& source_;
  recording::Stacks stacks_;
  Leaks leaks_;
  std::optional<Reach> reach_;
  std::vector<ProcessLeaks> processes_;
};

}  // namespace oomrec::tools::findings
