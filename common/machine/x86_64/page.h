#pragma once

#include <cstdint>

namespace oomrec::machine {

constexpr std::uint64_t page_bytes() noexcept { return 4096; }

}  // namespace oomrec::machine
