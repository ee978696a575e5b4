#include "recorder/live/side_table.h"

namespace oomrec::live {

using session::g_session;
using session::kSideSpanBytes;

std::atomic<std::uint64_t>* SideTable::new_page(InHook hook, std::uint64_t address) noexcept {
  constexpr std::uint32_t kRetryPages = 1024;  // each try may be a system call
  if (address >> 48 != 0) return nullptr;
  const system::MutexGuard guard(lock_);
  if (!guard) return nullptr;
  if (const std::uint32_t page = index_.find(hash_of(address), any)) return word_in(page, address);
  if (failed_ != 0 && ++failed_ % kRetryPages != 0) return nullptr;

  failed_ = 1;
  const std::uint64_t bytes = (kSideSpanBytes >> shift_) * sizeof(std::uint64_t);
  const std::uint64_t offset = g_session.arena.take(hook, bytes);
  if (offset == 0 || !g_session.arena.populate(hook, offset, bytes)) return nullptr;
  const auto page = static_cast<std::uint32_t>(offset / session::kUnitBytes);
  std::uint32_t entry = 0;
  const bool added =
      g_session.side_pages.append(hook, entry, [&](session::SidePage& side) noexcept {
        side = {address & ~(kSideSpanBytes - 1), page, shift_};
      });
  if (!added || !index_.insert(hook, hash_of(address), page)) return nullptr;
  failed_ = 0;
  used_.store(true, std::memory_order_relaxed);
  std::atomic<std::uint64_t>* const word = word_in(page, address);
  add_latest(address, word);
  return word;
}

void SideTable::add_latest(std::uint64_t address, const std::atomic<std::uint64_t>* word) noexcept {
  const auto page = reinterpret_cast<std::uint64_t>(word - slot_in_span(address)) >> 12;
  spans_[place_of(address)].store(page | tag_of(address) << kPageBits, std::memory_order_release);
}

void SideTable::reset(InHook hook) noexcept {
  for (std::atomic<std::uint64_t>& span : spans_)  // does not touch pages without an entry
    if (span.load(std::memory_order_relaxed) != 0) span.store(0, std::memory_order_relaxed);
  lock_.unlock();  // its owner may not exist in the child
  failed_ = 0;
  used_.store(false, std::memory_order_relaxed);
  index_.reset(hook);
}

}  // namespace oomrec::live
