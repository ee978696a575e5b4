#include "recorder/forget/thinning.h"

#include <algorithm>
#include <bit>

#include "recorder/live/full_holders.h"
#include "recorder/session/writer.h"
#include "recorder/state/sampler.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using live::Block;
using session::g_session;

namespace {

constexpr std::uint32_t kBlocksAtOnce = 256;
constexpr std::uint64_t kFewestSamples = 64;  // an eighth of an estimate is error

constinit RandomNumbers g_random{20};  // one thread at a time

// Like the sampler, which counts an empty block, too.
std::uint64_t stands_for(const Block& block) noexcept { return (block.bytes + 1) * block.weight; }

bool is_of_python(std::uint32_t holder) noexcept {
  return static_cast<Space>(g_session.holders.at(holder).space) == Space::python;
}

// Of the heap and of Python's objects; a block of a device is no sample.
bool may_be_thinned(const Block& block) noexcept {
  if (block.address != live::address_of(block.address)) return false;
  return static_cast<Space>(g_session.holders.at(block.holder).space) == Space::heap ||
         is_of_python(block.holder);
}

// The holder's block has another weight. Objects are a share of their pool.
void change_weight(InHook hook, const Block& block, std::uint32_t weight) noexcept {
  const std::uint32_t pool = is_of_python(block.holder) ? g_state.object_pool_holder.load() : 0;
  live::make_full(hook, block.holder, session::kHolderEstimated);
  if (weight > block.weight) {
    const std::uint32_t more = weight - block.weight;
    g_state.holders.restore(hook, block.holder, block.bytes * more, more);
    if (pool != 0) g_state.holders.shrink(hook, pool, block.bytes * more, 0);
  } else {
    const std::uint32_t less = block.weight - weight;
    g_state.holders.shrink(hook, block.holder, block.bytes * less, less);
    if (pool != 0) g_state.holders.restore(hook, pool, block.bytes * less, 0);
  }
}

}  // namespace

bool Thinning::next(InHook hook) noexcept {
  const std::uint32_t blocks = g_session.live_blocks.size();
  const std::uint32_t end = std::min(at_ + kBlocksAtOnce, blocks);
  pass_ == Pass::weighing ? weigh(hook, end) : thin(hook, end);
  if (at_ < blocks) return false;
  if (pass_ == Pass::thinning) return true;
  choose_bound();
  pass_ = Pass::thinning;
  at_ = 1;
  return bound_ == 0;
}

void Thinning::weigh(InHook hook, std::uint32_t end) noexcept {
  const auto note = [&](const Block& block) noexcept {
    if (!may_be_thinned(block)) return block.weight;
    const std::uint32_t power = std::bit_width(stands_for(block)) % kPowers;
    ++samples_[power];
    bytes_[power] += static_cast<double>(stands_for(block));
    return block.weight;
  };
  const auto changed = [](const Block&, std::uint32_t) noexcept { return live::InFilter::yes; };
  for (; at_ < end; ++at_) g_state.blocks.reweigh(hook, at_, note, changed);
}

// So that half of the samples remain.
void Thinning::choose_bound() noexcept {
  double all = 0;
  for (const std::uint32_t samples : samples_) all += samples;
  constexpr std::uint64_t kSampleBytes = 512;  // in the recording: with its holder and stack

  const bool is_full = g_state.blocks.was_full() || is_full_;
  const std::uint64_t fewest = is_full ? kFewestSamples : g_state.budget_bytes / 16 / kSampleBytes;
  if (all < static_cast<double>(fewest)) return;
  double left = all;
  for (bound_ = 1024; left > all / 2 && bound_ < kCoarsestInterval; bound_ *= 2) {
    left = 0;
    for (std::uint32_t i = 0; i < kPowers; ++i)
      left +=
          std::min(static_cast<double>(samples_[i]), bytes_[i] / static_cast<double>(bound_ * 2));
  }
  sample_at_least(bound_);
}

std::uint64_t Thinning::coarsest() const noexcept {
  double all = 0;
  for (const double bytes : bytes_) all += bytes;
  return static_cast<std::uint64_t>(all) / kFewestSamples;
}

std::uint32_t Thinning::weight_of(const Block& block) const noexcept {
  const std::uint64_t represented = stands_for(block);
  if (represented >= bound_ || !may_be_thinned(block)) return block.weight;
  const auto bound = static_cast<double>(bound_);
  if (g_random.next() * bound >= static_cast<double>(represented)) return 0;
  return static_cast<std::uint32_t>(bound / static_cast<double>(block.bytes + 1) + g_random.next());
}

void Thinning::thin(InHook hook, std::uint32_t end) noexcept {
  for (; at_ < end; ++at_) {
    g_state.blocks.reweigh(
        hook, at_, [&](const Block& block) noexcept { return weight_of(block); },
        [&](const Block& block, std::uint32_t weight) noexcept {
          change_weight(hook, block, weight);
          const bool is_object = g_state.objects.holds(block.address);
          if (weight == 0 && is_object) g_state.objects.remove(hook, block.address);
          return is_object ? live::InFilter::no : live::InFilter::yes;
        });
  }
}

}  // namespace oomrec::recorder
