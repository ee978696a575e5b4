// Finds the DWARF unit or function that covers an address.
#pragma once

#include <elfutils/libdw.h>

#include <vector>

namespace oomrec::tools::recording {

struct AddressRange {
  Dwarf_Addr low;
  Dwarf_Addr high;
  Dwarf_Off die;  // the unit or function that covers it
};

// Adds the ranges of `die`. A function that the linker dropped has none.
void add_ranges(Dwarf_Die* die, std::vector<AddressRange>& ranges);

void sort_ranges(std::vector<AddressRange>& ranges);

// The range that contains `address`, or nullptr. `ranges` are sorted and disjoint.
const AddressRange* find_range(const std::vector<AddressRange>& ranges, Dwarf_Addr address);

}  // namespace oomrec::tools::recording
