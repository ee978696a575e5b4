#include "tools/recording/symbolize/address_ranges.h"

#include <algorithm>
#include <cstddef>

namespace oomrec::tools::recording {

const AddressRange* find_range(const std::vector<AddressRange>& ranges, Dwarf_Addr address) {
  auto after = std::ranges::upper_bound(ranges, address, {}, &AddressRange::low);
  if (after == ranges.begin()) return nullptr;
  --after;
  return address < after->high ? &*after : nullptr;
}

void add_ranges(Dwarf_Die* die, std::vector<AddressRange>& ranges) {
  Dwarf_Addr base = 0;
  Dwarf_Addr low = 0;
  Dwarf_Addr high = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;) {
    // Address 0: the linker dropped the function.
    if (low != 0 && low < high) ranges.push_back({low, high, dwarf_dieoffset(die)});
  }
}

void sort_ranges(std::vector<AddressRange>& ranges) {
  std::ranges::sort(ranges, {}, &AddressRange::low);
}

}  // namespace oomrec::tools::recording
