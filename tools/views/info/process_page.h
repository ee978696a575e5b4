// `oomrec info PID`: whether a running process is recorded, and what of it is not observed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/processes/attach/unobserved.h"

namespace oomrec::tools::views {

struct ProcessCheck {
  pid_t pid = 0;
  std::string title;  // the command line, printable; empty: not recorded
  bool recorded = false;
  std::string obstacle;           // why it cannot be attached to; empty: it can, or it is recorded
  bool attached = false;          // since `oomrec attach`, not from its start
  std::string mode;               // "sampled" or "exact", as in force now; empty: not recorded
  std::uint64_t limit_bytes = 0;  // --limit; 0: none
  std::string recording;          // the file; empty: not recorded
  std::string bundles;            // the directory, as the process names it; empty: unknown
  std::string heap_note;          // why the heap is not observed; empty: it is
  std::vector<processes::Unobserved> unobserved;
};

// Throws Error: there is no such process, or it may not be read.
ProcessCheck check_process(pid_t pid);
void print_process(const ProcessCheck& check, const Terminal& terminal);
Json process_json(const ProcessCheck& check);

}  // namespace oomrec::tools::views
