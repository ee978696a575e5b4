// What the session and the threads refer to without being counted: rings, sums, failures, signals,
// checkpoints, samples of growth, and blocks between the release and the failure of a realloc.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Claims all that is referred to, a part at each call.
class References {
 public:
  void begin() noexcept { *this = {}; }

  // True: all is claimed.
  bool claim_next(InHook) noexcept;

 private:
  enum class Table : std::uint8_t { lanes, failures, sent_signals, checkpoints, growth, none };

  void next_table() noexcept;
  void claim_lane(std::uint32_t lane) noexcept;
  void claim_checkpoint(InHook, std::uint32_t entry) noexcept;

  Table table_ = Table::lanes;
  std::uint32_t entry_ = 1;  // of the table
  std::uint32_t slot_ = 0;   // of the lane's ring
};

}  // namespace oomrec::recorder
