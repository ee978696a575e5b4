// Address space: mmap and its family, the break, System V shared memory.
//
// A failure is ENOMEM, or EAGAIN or EPERM for memory that would be locked; other errors are misuse.
// A caller with a fallback requests huge pages, low or locked memory, a hinted address, or a resize
// in place: such a request is a probe. Over memory that is mapped already a fixed address is no
// probe, but the commit of what was reserved. A mapping by an allocator inside a hooked call is
// part of that call.
#include <errno.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/vfs.h>

#include <atomic>
#include <bit>

#include "common/machine/page.h"
#include "common/machine/platform.h"
#include "common/system/hook_scope.h"
#include "common/system/syscalls.h"
#include "recorder/events/heap.h"
#include "recorder/events/in_flight.h"
#include "recorder/events/mappings.h"
#include "recorder/events/shared_memory.h"
#include "recorder/failures/evidence.h"
#include "recorder/failures/failures.h"
#include "recorder/state/request.h"
#include "shim/heap.h"
#include "shim/interpose/export.h"
#include "shim/interpose/next.h"

namespace oomrec::shim {
namespace {

constexpr int kProbeFlags = MAP_HUGETLB | machine::kLowMapping | MAP_LOCKED | MAP_FIXED_NOREPLACE;

std::uint64_t address_of(const void* at) noexcept { return reinterpret_cast<std::uint64_t>(at); }

// ENOMEM has two meanings for mprotect() and mlock(): a shortage, or a range with holes, which is
// misuse. msync(MS_ASYNC) does nothing but look for holes.
bool is_mapped(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t start = machine::page_down(address);
  return system::call(SYS_msync, start, bytes + (address - start), MS_ASYNC) == 0;
}

// mimalloc reserves so much, also as the heap of an interpreter, then once more with room to align
// it, and asks for less if that is refused.
constexpr std::size_t kMimallocReserve = std::size_t{1} << 30;
constexpr std::size_t kMimallocAlignment = std::size_t{64} << 20;
bool is_reserve_of_mimalloc(std::size_t bytes, int flags) noexcept {
  return bytes >= kMimallocReserve && bytes <= kMimallocReserve + kMimallocAlignment &&
         (flags & MAP_NORESERVE) != 0;
}

// Only locked memory fails a mapping with EAGAIN or EPERM.
bool is_shortage(int error, recorder::Request& request) noexcept {
  if (error == EAGAIN) request.locks = true;
  return error == ENOMEM || error == EAGAIN || (error == EPERM && request.locks);
}

// The common part of all hooks here: checks the limit, makes the call, records it. `made` receives
// the result of a successful call.
//   counted        std::uint64_t(InHook): bytes that would newly count against the limit
//   real           the call
//   failed_result  its result when it fails
//   failed         bool(InHook, Request&): completes a failed request; false: it was misuse
template <class Result, class Counted, class Real, class Made, class Failed>
Result observe_mapping(recorder::Request request, Result failed_result, Counted counted, Real real,
                       Made made, Failed failed) noexcept {
  const HookScope scope{HookState::kernel};
  if (!scope.outermost() || is_part_of_new(request.bytes)) return real();
  const std::uint64_t more = counted(scope.in_hook());
  if (!recorder::admits(scope.in_hook(), request, more)) {
    failed(scope.in_hook(), request);
    recorder::on_failure(scope.in_hook(), request, ENOMEM, recorder::FailedBy::recorder);
    errno = ENOMEM;
    return failed_result;
  }
  recorder::InFlight in_flight{scope.in_hook(), request, more};
  scope.leave_recorder();
  const Result result = real();
  const KeepErrno keep;
  if (result == failed_result) in_flight.end();
  if (result != failed_result)
    made(scope.in_hook(), result);
  else if (is_shortage(keep.value(), request) && failed(scope.in_hook(), request))
    recorder::on_failure(scope.in_hook(), request, keep.value(), recorder::FailedBy::system);
  return result;
}

constexpr auto kNothingToAdd = [](InHook, recorder::Request&) noexcept { return true; };

std::uint8_t huge_page_log2(int flags) noexcept {
  if ((flags & MAP_HUGETLB) == 0) return 0;
  const auto log2 = static_cast<std::uint8_t>(static_cast<unsigned>(flags) >> MAP_HUGE_SHIFT & 63);
  return log2 == 0 ? recorder::kDefaultHugePage : log2;
}

// Whether the file is in memory. Of a memfd, the kernel's own tmpfs.
bool is_in_memory(int fd) noexcept {
  constexpr long kTmpfs = 0x01021994, kHugetlbfs = 0x958458f6;
  struct statfs file_system;
  return system::call(SYS_fstatfs, fd, &file_system) == 0 &&
         (file_system.f_type == kTmpfs || file_system.f_type == kHugetlbfs);
}

// The page size of the file's file system, if that is hugetlbfs.
std::uint8_t huge_page_log2_of_file(int fd) noexcept {
  constexpr long kHugetlbfs = 0x958458f6;
  struct statfs file_system;
  if (fd < 0 || system::call(SYS_fstatfs, fd, &file_system) != 0 ||
      file_system.f_type != kHugetlbfs)
    return 0;
  return static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint64_t>(file_system.f_bsize)) -
                                   1);
}

void* map(void* at, size_t n, int protection, int flags, int fd, off_t offset,
          const void* caller) noexcept {
  const bool at_fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  recorder::Mapping mapping{Api::mmap, at_fixed ? address_of(at) : 0, n, protection,
                            flags,     (flags & MAP_ANONYMOUS) == 0};
  mapping.hinted = at != nullptr && !at_fixed;
  const bool is_fixed = (flags & MAP_FIXED) != 0;
  recorder::Request request{Space::map, Api::mmap, n};
  request.probe = (flags & kProbeFlags) != 0 || (at != nullptr && !is_fixed) ||
                  is_reserve_of_mimalloc(n, flags);
  request.locks = (flags & MAP_LOCKED) != 0;
  request.huge_page_log2 = huge_page_log2(flags);
  return observe_mapping<void*>(
      request, MAP_FAILED,
      [&](InHook hook) {
        mapping.for_later = recorder::is_for_later(hook, n, caller);
        return recorder::counted_bytes(hook, mapping);
      },
      [&] { return g_next.mmap(at, n, protection, flags, fd, offset); },
      [&](InHook hook, void* made) {
        mapping.address = address_of(made);
        mapping.in_memory = recorder::may_be_in_memory(mapping) && is_in_memory(fd);
        recorder::on_map(hook, mapping);
        recorder::on_shared_file(hook, mapping, fd, static_cast<std::uint64_t>(offset));
      },
      [&](InHook hook, recorder::Request& failed) {
        if (is_fixed) {
          failed.commits =
              recorder::is_known(hook, address_of(at), n) || is_mapped(address_of(at), n);
          failed.probe = failed.probe || !failed.commits;
        }
        if (failed.huge_page_log2 == 0) failed.huge_page_log2 = huge_page_log2_of_file(fd);
        return true;
      });
}

// Cache of attached System V shared memory: shmdt has no size argument.
struct Attachment {
  std::atomic<std::uint64_t> address;
  std::atomic<std::uint64_t> bytes;
};
constexpr std::size_t kAttachments = 256;
constinit Attachment g_attachments[kAttachments];

void cache_attachment(std::uint64_t address, std::uint64_t bytes) noexcept {
  for (Attachment& attachment : g_attachments) {
    std::uint64_t none = 0;
    if (attachment.address.load() != 0 ||
        !attachment.address.compare_exchange_strong(none, address))
      continue;
    attachment.bytes.store(bytes);
    return;
  }
}

std::uint64_t remove_attachment(std::uint64_t address) noexcept {
  for (Attachment& attachment : g_attachments) {
    if (attachment.address.load() != address) continue;
    const std::uint64_t bytes = attachment.bytes.load();
    attachment.address.store(0);
    return bytes;
  }
  return 0;
}

std::uint64_t segment_bytes(int id) noexcept {
  struct shmid_ds segment;
  return system::call(SYS_shmctl, id, IPC_STAT, &segment) < 0 ? 0 : segment.shm_segsz;
}

std::uint64_t growth(std::uint64_t old_bytes, std::uint64_t bytes) noexcept {
  return bytes > old_bytes ? bytes - old_bytes : 0;
}

std::uint64_t heap_break() noexcept { return address_of(g_next.sbrk(0)); }

}  // namespace

OOMREC_HOOK(void*, mmap, (void* at, size_t n, int protection, int flags, int fd, off_t offset)) {
  return map(at, n, protection, flags, fd, offset, __builtin_return_address(0));
}

OOMREC_HOOK(void*, mmap64, (void* at, size_t n, int protection, int flags, int fd, off_t offset)) {
  return map(at, n, protection, flags, fd, offset, __builtin_return_address(0));
}

OOMREC_HOOK(int, munmap, (void* at, size_t n)) {
  const HookScope scope{HookState::kernel};
  // Recorded before the call, because another thread may get the range at once. These two cases
  // fail.
  const bool is_invalid = address_of(at) % machine::page_bytes() != 0 || n == 0;
  if (scope.outermost() && !is_part_of_new(n) && !is_invalid) {
    recorder::on_unmap(scope.in_hook(), Api::munmap, address_of(at), machine::page_up(n));
    scope.leave_recorder();
  }
  return g_next.munmap(at, n);
}

OOMREC_HOOK(void*, mremap, (void* at, size_t old_n, size_t n, int flags, void* to)) {
  const bool probe = (flags & MREMAP_MAYMOVE) == 0;
  const bool old_stays = (flags & MREMAP_DONTUNMAP) != 0;
  return observe_mapping<void*>(
      {Space::map, Api::mremap, n, probe}, MAP_FAILED,
      [&](InHook hook) {
        return recorder::counted_by_remap(hook, address_of(at), old_stays ? n : growth(old_n, n));
      },
      [&] { return g_next.mremap(at, old_n, n, flags, to); },
      [&](InHook hook, void* made) {
        recorder::on_remap(hook, address_of(at), old_n, address_of(made), n,
                           old_stays ? recorder::OldRange::stays : recorder::OldRange::goes);
      },
      [&](InHook hook, recorder::Request& failed) {
        if ((flags & MREMAP_FIXED) != 0)
          failed.commits = recorder::is_known(hook, address_of(to), n);
        return true;
      });
}

OOMREC_HOOK(int, mprotect, (void* at, size_t n, int protection)) {
  return observe_mapping<int>(
      {Space::map, Api::mprotect, n}, -1,
      [&](InHook hook) {
        return recorder::counted_by_protect(hook, address_of(at), machine::page_up(n), protection);
      },
      [&] { return g_next.mprotect(at, n, protection); },
      [&](InHook hook, int) {
        recorder::on_protect(hook, address_of(at), machine::page_up(n), protection);
      },
      [&](InHook, recorder::Request& failed) {
        failed.commits = true;
        return is_mapped(address_of(at), n);
      });
}

OOMREC_HOOK(int, brk, (void* end)) {
  const std::uint64_t before = heap_break();
  const std::uint64_t more = growth(before, address_of(end));
  return observe_mapping<int>(
      {Space::map, Api::brk, more}, -1, [&](InHook) { return more; },
      [&] { return g_next.brk(end); },
      [&](InHook hook, int) { recorder::on_break(hook, Api::brk, before, address_of(end)); },
      kNothingToAdd);
}

OOMREC_HOOK(void*, sbrk, (intptr_t increment)) {
  if (increment == 0) return g_next.sbrk(0);
  const std::uint64_t more = increment > 0 ? static_cast<std::uint64_t>(increment) : 0;
  void* const failed_result = reinterpret_cast<void*>(-1);
  return observe_mapping<void*>(
      {Space::map, Api::sbrk, more}, failed_result, [&](InHook) { return more; },
      [&] { return g_next.sbrk(increment); },
      [&](InHook hook, void* before) {
        recorder::on_break(hook, Api::sbrk, address_of(before),
                           address_of(before) + static_cast<std::uint64_t>(increment));
      },
      kNothingToAdd);
}

OOMREC_HOOK(void*, shmat, (int id, const void* at, int flags)) {
  const bool read_only = (flags & SHM_RDONLY) != 0;
  recorder::Mapping mapping{Api::shmat,
                            0,
                            segment_bytes(id),
                            read_only ? PROT_READ : PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS,
                            false};
  return observe_mapping<void*>(
      {Space::map, Api::shmat, mapping.bytes, at != nullptr}, reinterpret_cast<void*>(-1),
      [&](InHook hook) { return recorder::counted_bytes(hook, mapping); },
      [&] { return g_next.shmat(id, at, flags); },
      [&](InHook hook, void* made) {
        if (mapping.bytes == 0) return;
        mapping.address = address_of(made);
        cache_attachment(mapping.address, mapping.bytes);
        recorder::on_map(hook, mapping);
      },
      kNothingToAdd);
}

OOMREC_HOOK(int, shmdt, (const void* at)) {
  const HookScope scope{HookState::kernel};
  if (const std::uint64_t bytes = remove_attachment(address_of(at));
      scope.outermost() && bytes != 0) {
    recorder::on_unmap(scope.in_hook(), Api::shmdt, address_of(at), machine::page_up(bytes));
    scope.leave_recorder();
  }
  return g_next.shmdt(at);
}

// Locked memory, which RLIMIT_MEMLOCK bounds. Most programs that lock memory do without where they
// may not, so a failure is a probe.
namespace {

void report_lock(InHook hook, Api api, std::uint64_t bytes, int error) noexcept {
  recorder::Request request{Space::map, api, bytes, true};
  request.locks = true;
  recorder::on_failure(hook, request, error, recorder::FailedBy::system);
}

template <class Real>
int lock_range(const void* at, size_t n, Real real) noexcept {
  const HookScope scope{HookState::kernel};
  const int result = real();
  const KeepErrno keep;
  const int error = keep.value();
  if (result == 0 || !scope.outermost()) return result;
  const bool is_short = error == EAGAIN || error == EPERM || error == ENOMEM;
  if (is_short && is_mapped(address_of(at), n)) report_lock(scope.in_hook(), Api::mlock, n, error);
  return result;
}

}  // namespace

OOMREC_HOOK(int, mlock, (const void* at, size_t n)) {
  return lock_range(at, n, [&] { return g_next.mlock(at, n); });
}

OOMREC_HOOK(int, mlock2, (const void* at, size_t n, unsigned flags)) {
  return lock_range(at, n, [&] { return g_next.mlock2(at, n, flags); });
}

OOMREC_HOOK(int, mlockall, (int flags)) {
  const HookScope scope{HookState::kernel};
  const int result = g_next.mlockall(flags);
  const KeepErrno keep;
  const int error = keep.value();
  if (result == 0)
    recorder::set_future_is_locked((flags & MCL_FUTURE) != 0);
  else if (scope.outermost() && (error == EAGAIN || error == EPERM || error == ENOMEM))
    report_lock(scope.in_hook(), Api::mlockall, 0, error);
  return result;
}

OOMREC_HOOK(int, munlockall, ()) {
  const int result = g_next.munlockall();
  if (result == 0) recorder::set_future_is_locked(false);
  return result;
}

}  // namespace oomrec::shim
