// Compares our types with the vendor's: OURS is our namespace of types, the global one is theirs.
// The compiler does all checks.
#pragma once

#include <cstddef>

#define SAME_SIZE(type) \
  static_assert(sizeof(OURS::type) == sizeof(::type) && alignof(OURS::type) == alignof(::type));
#define SAME_FIELD(type, field)                                           \
  static_assert(offsetof(OURS::type, field) == offsetof(::type, field) && \
                sizeof(OURS::type::field) == sizeof(::type::field));
#define SAME_VALUE(name) \
  static_assert(static_cast<long long>(OURS::name) == static_cast<long long>(::name));

// A row of a function table. The cast selects the C function among the header's overloads.
#define SAME_PARAMETERS(result, name, parameters) \
  static_assert(static_cast<result(*) parameters>(&::name) != nullptr);
