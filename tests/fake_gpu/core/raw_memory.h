// Maps address space by raw system calls: a recorder that interposes libc's mmap or syscall does
// not see the fake's memory, like that of a real device.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>

#include "common/machine/instructions.h"
#include "common/machine/platform.h"

namespace fake_gpu {

using Address = unsigned long long;

inline long raw_call(long number, long a, long b = 0, long c = 0, long d = 0, long e = 0,
                     long f = 0) {
  return oomrec::machine::system_call(number, {a, b, c, d, e, f});
}

enum class Where { anywhere, below_2g };  // the first ABI's addresses have 32 bits

// Maps untouched pages; 0: no address space. protection: PROT_*.
inline Address take_pages(std::size_t bytes, int protection, Where where = Where::anywhere) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const auto map_at = [&](Address at, int more) -> Address {
    const long taken = raw_call(SYS_mmap, static_cast<long>(at), static_cast<long>(bytes),
                                protection, flags | more, -1, 0);
    return taken < 0 && taken > -4096 ? 0 : static_cast<Address>(taken);
  };
  if (where == Where::anywhere) return map_at(0, 0);
  constexpr int kLow = oomrec::machine::kLowMapping;
  if constexpr (kLow != 0) return map_at(0, kLow);
  constexpr Address kFirst = 1u << 28, kEnd = 1u << 31, kStep = 1u << 20;
  for (Address at = kFirst; at + bytes <= kEnd; at += kStep)
    if (const Address taken = map_at(at, MAP_FIXED_NOREPLACE); taken != 0) return taken;
  return 0;
}

inline void give_back_pages(Address address, std::size_t bytes) {
  raw_call(SYS_munmap, static_cast<long>(address), static_cast<long>(bytes));
}

// Maps and unmaps pages inside a reservation.
inline void open_pages(Address address, std::size_t bytes) {
  raw_call(SYS_mprotect, static_cast<long>(address), static_cast<long>(bytes),
           PROT_READ | PROT_WRITE);
}

inline void close_pages(Address address, std::size_t bytes) {
  raw_call(SYS_madvise, static_cast<long>(address), static_cast<long>(bytes), MADV_DONTNEED);
  raw_call(SYS_mprotect, static_cast<long>(address), static_cast<long>(bytes), PROT_NONE);
}

}  // namespace fake_gpu
