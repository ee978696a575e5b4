// The library's own range of addresses, whose frames capture() leaves out.
#pragma once

#include "recorder/stack/modules.h"

namespace oomrec::stack {

// start() sets it to the module that holds capture(); a program that links the recorder statically
// (the unit tests) gives a range that holds none of its own code.
void set_own_code(const AddressRange&) noexcept;

}  // namespace oomrec::stack
