// A refused request as the thread remembers it that asked, with all that a bundle of it needs.
#pragma once

#include <cstdint>

#include "recorder/state/request.h"

namespace oomrec::recorder {

struct Refusal {
  Request request{};
  int error = 0;
  bool by_us = false;

  // PyTorch's, whose allocator gives back what it keeps and tries again: it is told when that
  // fails, too (confirm_refusal), or has helped (note_torch_served), else at the end.
  bool provisional = false;
  bool settled = false;     // the same was had later, or it was confirmed
  bool had_before = false;  // after an earlier one of its kind the program had what it wanted

  // The same stack has been given memory since. Set by the allocations that are recorded: in
  // sampled mode a small block may pass unseen.
  bool served = false;
  bool raised = false;  // an exception came of it, which its bundle tells

  std::uint32_t number = 0;  // among all refusals of the process, from 1
  std::uint32_t node = 0;
  std::uint32_t thread = 0;
  std::uint32_t entry = 0;    // in `failures`; 0: there was no room
  std::uint64_t time_ns = 0;  // 0: nothing was refused
  std::int64_t live_bytes = 0;
};

}  // namespace oomrec::recorder
