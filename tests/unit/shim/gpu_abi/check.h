// Compares our types with the vendor's: OURS is our namespace of types, the global one is theirs.
// The compiler does all checks.
#pragma once

#include <cstddef>

// EACH(check, type, a, b …) is check(type, a) check(type, b) … of up to 64.
#define EACH(check, type, ...) EACH_64(EACH_FIRST(check, type, __VA_ARGS__))
#define EACH_FIRST(check, type, one, ...) \
  check(type, one) __VA_OPT__(EACH_NEXT EACH_NONE(check, type, __VA_ARGS__))
#define EACH_NEXT() EACH_FIRST
#define EACH_NONE ()
#define EACH_64(...) EACH_16(EACH_16(EACH_16(EACH_16(__VA_ARGS__))))
#define EACH_16(...) EACH_4(EACH_4(EACH_4(EACH_4(__VA_ARGS__))))
#define EACH_4(...) EACH_1(EACH_1(EACH_1(EACH_1(__VA_ARGS__))))
#define EACH_1(...) __VA_ARGS__

#define SAME_SIZES(...) EACH(SAME_SIZE, , __VA_ARGS__)
#define SAME_VALUES(...) EACH(SAME_VALUE, , __VA_ARGS__)
#define SAME_FIELDS(type, ...) EACH(SAME_FIELD, type, __VA_ARGS__)
#define SAME_STRUCT(type, ...) SAME_SIZE(, type) SAME_FIELDS(type, __VA_ARGS__)
#define SAME_ARRAY(type, ...) SAME_STRUCT(type, Width, Height, Format, NumChannels, __VA_ARGS__)

#define SAME_SIZE(unused, type) \
  static_assert(sizeof(OURS::type) == sizeof(::type) && alignof(OURS::type) == alignof(::type));
#define SAME_FIELD(type, field)                                           \
  static_assert(offsetof(OURS::type, field) == offsetof(::type, field) && \
                sizeof(OURS::type::field) == sizeof(::type::field));
#define SAME_VALUE(unused, name) \
  static_assert(static_cast<long long>(OURS::name) == static_cast<long long>(::name));

// A row of a function table. The cast selects the C function among the header's overloads.
#define SAME_PARAMETERS(result, name, parameters) \
  static_assert(static_cast<result(*) parameters>(&::name) != nullptr);

// The formats of arrays that both vendors have, and the bits of three channels.
// clang-format off
#define COMMON_FORMATS(X) \
  X(UNSIGNED_INT8, 24) X(UNSIGNED_INT16, 48) X(UNSIGNED_INT32, 96) \
  X(SIGNED_INT8, 24) X(SIGNED_INT16, 48) X(SIGNED_INT32, 96) X(HALF, 48) X(FLOAT, 96)
// clang-format on
