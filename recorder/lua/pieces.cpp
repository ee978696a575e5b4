#include "recorder/lua/pieces.h"

#include <cstring>

#include "common/system/syscalls.h"

namespace oomrec::stack {

void Pieces::read(InHook) noexcept {
  if (count_ == 0) return;
  const long pid = system::call(SYS_getpid);
  for (std::uint32_t at = 0; at != count_;) {
    long got =
        system::call(SYS_process_vm_readv, pid, to_ + at, count_ - at, from_ + at, count_ - at, 0);
    for (; at != count_ && got >= static_cast<long>(to_[at].iov_len); ++at)
      got -= static_cast<long>(to_[at].iov_len);
    if (at == count_) break;
    std::memset(to_[at].iov_base, 0, to_[at].iov_len);
    ++at;
  }
  count_ = 0;
}

}  // namespace oomrec::stack
