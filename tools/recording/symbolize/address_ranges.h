// Which unit or function of DWARF covers an address.
#pragma once

#include <elfutils/libdw.h>

#include <vector>

namespace oomrec::tools::recording {

struct AddressRange {
  Dwarf_Addr low;
  Dwarf_Addr high;
  Dwarf_Off die;  // of the unit, or of the function, that covers it
};

// Adds those of `die`; a function that the linker dropped has none.
void add_ranges(Dwarf_Die* die, std::vector<AddressRange>& ranges);

void sort_ranges(std::vector<AddressRange>& ranges);

// The entry of sorted, disjoint `ranges` that holds `address`; nullptr where there is none.
const AddressRange* covering(const std::vector<AddressRange>& ranges, Dwarf_Addr address);

}  // namespace oomrec::tools::recording
