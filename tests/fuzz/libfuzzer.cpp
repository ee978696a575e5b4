// The same targets under libFuzzer: FUZZ_TARGET names one (scripts/fuzz).
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  static const oomrec::fuzz::Target* const target = [] {
    const char* const name = std::getenv("FUZZ_TARGET");
    const auto* const found = oomrec::fuzz::target_of(name != nullptr ? name : "");
    if (found == nullptr || std::freopen("/dev/null", "w", stdout) == nullptr) std::exit(2);
    oomrec::fuzz::directory();  // made now, so that it is destroyed after it was removed
    std::atexit(oomrec::fuzz::remove_files);
    return found;
  }();
  target->read({reinterpret_cast<const char*>(bytes), count});
  return 0;
}
