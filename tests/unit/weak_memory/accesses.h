// What an access of instrumented code does to the model. Outside of writers and readers: nothing.
#pragma once

#include <cstddef>

#include "tests/unit/weak_memory/memory.h"

namespace oomrec::weak_memory {

// Call it before the access. A reader then finds there what it loads.
void load(const void* address, std::size_t bytes, Order);
// `released`: beside what the thread releases; see released_by_newest().
void store(const void* address, std::size_t bytes, Order, const View* released = nullptr);
void fence(Order);

// The load of an exchange: it finds the newest value.
void load_to_change(const void* address, std::size_t bytes, Order);
// Before an exchange that fails if it does not find `expected`, by a load with this order. Whether
// it finds it; if not, it has loaded another value.
bool finds(const void* address, std::size_t bytes, const void* expected, Order);

// For an exchange, whose store goes on with the release of the store that it replaces.
View released_by_newest(const void* address, std::size_t bytes);

}  // namespace oomrec::weak_memory
