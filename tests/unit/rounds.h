// How often a test repeats something at random. Under a sanitizer a quarter of it: a round takes
// several times as long there, and the plain build has made all of them.
#pragma once

namespace oomrec {

constexpr unsigned rounds(unsigned whole) noexcept {
#if defined(OOMREC_ADDRESS_SANITIZER) || defined(OOMREC_THREAD_SANITIZER)
  return whole / 4;
#else
  return whole;
#endif
}

}  // namespace oomrec
