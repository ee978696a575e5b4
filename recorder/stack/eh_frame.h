// Finds the call frame information of an address: the sorted table of .eh_frame_hdr, its FDE, and
// the FDE's CIE (LSB, "Exception Frames").
#pragma once

#include <cstdint>

#include "common/machine/frames.h"
#include "recorder/stack/dwarf_reader.h"
#include "recorder/stack/modules.h"

namespace oomrec::stack {

// DWARF's numbers of the registers that we track; kReturn: the column of the return address.
inline constexpr std::uint64_t kBp = machine::kDwarfBp, kSp = machine::kDwarfSp,
                               kReturn = machine::kDwarfReturn;

// One FDE with its CIE.
struct FrameEntry {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::uint64_t code_alignment = 0;
  std::int64_t data_alignment = 0;
  std::uint64_t return_register = 0;
  std::uint8_t pointer_encoding = 0;
  bool signal = false;
  DwarfReader initial{};
  DwarfReader program{};
};

enum class Found : std::uint8_t { nothing, entry, not_understood };

// The FDE that covers `address`. All reads stay inside the segment that contains it.
Found find_entry(const LoadedModule& module, std::uint64_t address, FrameEntry& entry) noexcept;

}  // namespace oomrec::stack
