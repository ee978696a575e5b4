#include "recorder/live/object_bits.h"

#include <algorithm>

#include "common/system/memory.h"

namespace oomrec::live {

namespace {

constexpr std::uint32_t kSpansOfAMapping = 2;

}  // namespace

ObjectBits::Word* ObjectBits::word_of(std::uint64_t address) const noexcept {
  const std::uint64_t number = number_of(address);
  for (std::uint32_t i = 0; i < kProbes; ++i) {
    const Span& span = spans_[(place_of(number) + i) % kPlaces];
    const std::uint64_t found = span.number.load(std::memory_order_acquire);
    if (found == number) return word_in(span, address);
    if (found == 0) return nullptr;
  }
  return nullptr;
}

bool ObjectBits::holds(std::uint64_t address) const noexcept {
  const Word* const word = word_of(address);
  return word != nullptr && is_set(word, address);
}

bool ObjectBits::add(InHook, std::uint64_t address) noexcept {
  Word* word = word_of(address);
  if (word == nullptr) {
    if (!add_span(number_of(address))) return false;
    word = word_of(address);
  }
  if ((word->fetch_or(bit_of(address), std::memory_order_relaxed) & bit_of(address)) == 0)
    count_.fetch_add(1, std::memory_order_relaxed);
  ever_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void ObjectBits::remove(InHook, std::uint64_t address) noexcept {
  Word* const word = word_of(address);
  if (word == nullptr) return;
  if ((word->fetch_and(~bit_of(address), std::memory_order_relaxed) & bit_of(address)) != 0)
    count_.fetch_sub(1, std::memory_order_relaxed);
}

ObjectBits::Word* ObjectBits::new_words() noexcept {
  if (unused_spans_ == 0) {
    constexpr std::size_t kBytes = kSpansOfAMapping * kSpanWords * sizeof(Word);
    void* const mapping = system::map_private(kBytes);
    if (mapping == nullptr) return nullptr;
    unused_ = static_cast<Word*>(mapping);
    unused_spans_ = kSpansOfAMapping;
  }
  Word* const words = unused_;
  unused_ += kSpanWords;
  --unused_spans_;
  return words;
}

bool ObjectBits::add_span(std::uint64_t number) noexcept {
  const system::MutexGuard guard(lock_);
  if (!guard) return false;
  for (std::uint32_t i = 0; i < kProbes; ++i) {
    Span& span = spans_[(place_of(number) + i) % kPlaces];
    const std::uint64_t found = span.number.load(std::memory_order_relaxed);
    if (found == number) return true;  // another thread was faster
    if (found != 0) continue;
    Word* const words = new_words();
    if (words == nullptr) return false;
    span.words = words;
    span.number.store(number, std::memory_order_release);
    return true;
  }
  return false;
}

void ObjectBits::start_anew(InHook) noexcept {
  lock_.unlock();  // its owner may not exist in the child
  ever_.store(0, std::memory_order_relaxed);
}

void ObjectBits::clear(InHook hook) noexcept {
  start_anew(hook);
  for (const Span& span : spans_)
    if (span.number.load(std::memory_order_relaxed) != 0) std::fill_n(span.words, kSpanWords, 0);
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::live
