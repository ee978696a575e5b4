// What a test does less of, or not at all, under AddressSanitizer and ThreadSanitizer.
#pragma once

namespace oomrec {

#if defined(OOMREC_ADDRESS_SANITIZER) || defined(OOMREC_THREAD_SANITIZER)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// How often a test repeats something at random. A round takes several times as long under a
// sanitizer, and the plain build makes all of them.
constexpr unsigned rounds(unsigned whole) noexcept { return kSanitized ? whole / 4 : whole; }

}  // namespace oomrec
