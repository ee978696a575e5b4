// What is known about an address: the two vendors ask for it in other words.
#pragma once

#include "tests/fake_gpu/core/blocks.h"

namespace fake_gpu {

// The block around the address, reservations left out: null where there is none.
const Block* block_at(Address address);

// Numbered as CU_POINTER_ATTRIBUTE_* and hipPointer_attribute, which agree.
int pointer_attribute(void* data, int attribute, Address address);
int pointer_attributes(unsigned count, const int* attributes, void** data, Address address);

}  // namespace fake_gpu
