// Attributes of an address, which the two vendors query differently.
#pragma once

#include "tests/fake_gpu/core/blocks.h"

namespace fake_gpu {

// The block that contains the address, without reservations; null: none.
const Block* block_at(Address address);

// Numbered as CU_POINTER_ATTRIBUTE_* and hipPointer_attribute, which agree.
int pointer_attribute(void* data, int attribute, Address address);
int pointer_attributes(unsigned count, const int* attributes, void** data, Address address);

}  // namespace fake_gpu
