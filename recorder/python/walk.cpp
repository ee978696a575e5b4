#include "recorder/python/walk.h"

#include "common/session/python_lines.h"
#include "common/session/view.h"
#include "common/session/vocabulary.h"
#include "recorder/python/attach.h"
#include "recorder/python/chain_cache.h"
#include "recorder/python/code_fingerprint.h"
#include "recorder/python/codes.h"
#include "recorder/python/unchanged_links.h"
#include "recorder/python/waiting.h"

namespace oomrec::stack {
namespace {

// When the buffer is full: how many more links to read to find the C frame of the last ones.
constexpr std::uint32_t kMarkerSearch = 4096;

std::uint16_t& hint_of(PythonCache& cache, std::uint64_t address) noexcept {
  return cache.hints[(address >> 4 ^ address >> 10) % PythonCache::kHints];
}

// One walk, and the cached one that it may meet.
class ChainWalk {
 public:
  ChainWalk(InHook hook, const ThreadState& state, PythonCache& cache, std::uint64_t frame,
            std::uint64_t cframe) noexcept
      : hook_(hook),
        state_(state),
        at_(g_interpreter.at),
        cache_(cache),
        frame_(frame),
        cframe_(have_cframe_markers(at_) ? cframe : 0) {}

  PythonStack stack() noexcept {
    while (frame_ != 0) {
      const std::uint32_t hit = hint_of(cache_, frame_);
      const bool is_hit = hit < cache_.count && cache_.link(hit).address == frame_;
      if (is_hit) {
        std::uint64_t cframe = cframe_;
        const std::uint32_t changed = g_interpreter.first_changed_link(cache_, hit, state_, cframe);
        if (changed == kThreadDied) return clear_python_cache(cache_);
        if (changed == kNoneChanged) return join(hit);
        if (!take(hit, changed)) return truncated();
        cframe_ = cframe;
        if (!add(&cache_.link(changed), cache_.frames[changed].word)) return end_early();
      } else if (!add(nullptr, 0)) {
        return end_early();
      }
    }
    return whole(0);
  }

 private:
  // Reads the current link; `like`: the cached link at this address. False: the buffer is full, or
  // the thread died.
  bool add(const PythonLink* like, std::uint64_t word) noexcept {
    // Check that the thread was alive before following an address that was read from it: a freed
    // state stays readable, but contains other data.
    const FrameCells cells = cells_of(at_, frame_);
    if (!state_.was_alive()) {
      died_ = true;
      return false;
    }
    if (!has_capacity_for(cells.role)) return false;
    PythonLink& link = cache_.fresh_links[fresh_];
    link = {frame_, cells.code, cells.instruction, {}, cells.role, false};
    append(is_shim_owner(cells.role) ? 0 : look_up(link, like, word), cframe_);
    if (have_cframe_markers(at_) && leaves_call(at_, cells)) cframe_ = outer_cframe(at_, cframe_);
    frame_ = cells.previous;
    return true;
  }

  // The word of a link that is not a shim.
  std::uint64_t look_up(PythonLink& link, const PythonLink* like, std::uint64_t word) noexcept {
    const std::uint64_t code = code_of(link.code);
    if (code == 0) return session::python_frame(0, 0);
    link.has_code = true;
    link.fingerprint = code_fingerprint(at_, code);
    const bool same_code = like != nullptr && like->has_code && like->code == link.code &&
                           like->fingerprint == link.fingerprint;
    std::uint32_t id = kHiddenCode;
    if (!same_code) {
      id = intern_code(hook_, code, link.fingerprint);
    } else if (word != 0) {
      id = session::code_of(word);
    }
    if (id == kHiddenCode) return 0;
    if (id == 0) link.address = 0;  // no cache hit next time: retry then
    return session::python_frame(id, instruction_of(frame_, code, link.instruction));
  }

  // Copies the cached links from `first` to before `end`: unchanged links inside a changed one.
  bool take(std::uint32_t first, std::uint32_t end) noexcept {
    for (std::uint32_t i = first; i != end; --i) {
      frame_ = cache_.link(i).address;
      if (!has_capacity_for(cache_.link(i).role)) return false;
      cache_.fresh_links[fresh_] = cache_.link(i);
      append(cache_.frames[i].word, cache_.frames[i].marker);
    }
    frame_ = end == kNoneChanged ? 0 : cache_.link(end).address;
    return true;
  }

  bool has_capacity_for(std::uint32_t role) const noexcept {
    return fresh_ != kPythonLinks && (shown_ != session::kMaxFrames || is_shim_owner(role));
  }

  // The fresh link is complete.
  void append(std::uint64_t word, std::uint64_t cframe) noexcept {
    const PythonLink& link = cache_.fresh_links[fresh_];
    cache_.fresh_frames[fresh_++] = {word, have_cframe_markers(at_) ? cframe : 0, 0, 0};
    shown_ += word != 0;
    if (is_shim_owner(link.role)) end_call(link.address);
  }

  // From 3.12 on the shim at the end of an eval call locates its C frame.
  void end_call(std::uint64_t marker) noexcept {
    for (; open_ != fresh_; ++open_) cache_.fresh_frames[open_].marker = marker;
  }

  // Everything from the link `hit` outwards is unchanged.
  PythonStack join(std::uint32_t hit) noexcept {
    const bool fits =
        hit + fresh_ < kPythonLinks && cache_.frames[hit].shown + shown_ <= session::kMaxFrames;
    if (!fits) return take(hit, kNoneChanged) ? whole(0) : truncated();
    if (!have_cframe_markers(at_)) end_call(cache_.frames[hit].marker);
    return whole(hit + 1);
  }

  PythonStack whole(std::uint32_t kept) noexcept {
    const std::uint32_t count = keep_fresh(kept);
    cache_.count = count;
    return {cache_.frames, count, kept, false};
  }

  PythonStack end_early() noexcept { return died_ ? clear_python_cache(cache_) : truncated(); }

  PythonStack truncated() noexcept {
    if (!have_cframe_markers(at_) && open_ != fresh_) end_call(next_shim());
    cache_.count = 0;
    return {cache_.frames, keep_fresh(0), 0, true};
  }

  std::uint64_t next_shim() noexcept {
    for (std::uint32_t left = kMarkerSearch; frame_ != 0 && left != 0; --left) {
      const FrameCells cells = cells_of(at_, frame_);
      if (!state_.was_alive()) return 0;
      if (is_shim_owner(cells.role)) return frame_;
      frame_ = cells.previous;
    }
    return 0;
  }

  // Stores the fresh links inside the outermost `kept` ones. Returns the total.
  std::uint32_t keep_fresh(std::uint32_t kept) noexcept {
    std::uint32_t shown = kept == 0 ? 0 : cache_.frames[kept - 1].shown;
    std::uint64_t chain = kept == 0 ? 0 : cache_.frames[kept - 1].chain;
    while (fresh_ != 0) {
      const PythonLink& link = cache_.link(kept) = cache_.fresh_links[--fresh_];
      PythonFrame& frame = cache_.frames[kept] = cache_.fresh_frames[fresh_];
      frame.shown = shown += frame.word != 0;
      frame.chain = chain = chain_of(chain, frame.word, frame.marker);
      hint_of(cache_, link.address) = static_cast<std::uint16_t>(kept++);
    }
    return kept;
  }

  const InHook hook_;
  const ThreadState& state_;
  const PythonOffsets& at_;
  PythonCache& cache_;
  std::uint64_t frame_;      // the current link
  std::uint64_t cframe_;     // its eval call's C frame, in versions that chain these
  std::uint32_t fresh_ = 0;  // links read or copied so far
  std::uint32_t open_ = 0;   // the first of them with an incomplete call
  std::uint32_t shown_ = 0;  // how many of them are shown
  bool died_ = false;
};

// False: not yet, or never, because the frames are something else.
[[gnu::cold, gnu::noinline]] bool verify(InHook hook, std::uint64_t frame) noexcept {
  const FrameCheck found = check_frames(hook, frame);
  if (found == FrameCheck::wrong)
    python_reject(
        hook,
        "this Python is newer than this oomrec knows, and lays out its frames in another way");
  if (found == FrameCheck::right) g_interpreter.unverified.store(false, std::memory_order_relaxed);
  return found == FrameCheck::right;
}

}  // namespace

PythonStack python_stack(InHook hook, PythonCache& cache, bool in_handler) noexcept {
  const Interpreter& python = g_interpreter;
  if (!python.ready.load(std::memory_order_acquire)) return clear_python_cache(cache);
  python_describe(hook);
  const ThreadState state = thread_state();
  if (state.address == 0) return clear_python_cache(cache);
  const PythonOffsets& at = python.at;
  std::uint64_t cframe = 0;
  std::uint64_t frame = 0;
  if (at.thread_cframe != PythonOffsets::kAbsent) {
    cframe = load<std::uint64_t>(state.address + at.thread_cframe);
    if (!state.was_alive()) return clear_python_cache(cache);
  }
  if (at.thread_frame != PythonOffsets::kAbsent) {
    frame = load<std::uint64_t>(state.address + at.thread_frame);
  } else if (in_handler && !innermost_call_is_linked(hook, state.address, cframe)) {
    return clear_python_cache(cache);
  } else if (cframe != 0) {
    frame = load<std::uint64_t>(cframe + at.cframe_current);
  }
  if (frame == 0 || !state.was_alive()) return clear_python_cache(cache);
  if (g_some_thread_state.load(std::memory_order_relaxed) != state.address) [[unlikely]]
    g_some_thread_state.store(state.address, std::memory_order_relaxed);
  if (python.unverified.load(std::memory_order_relaxed) && !verify(hook, frame)) [[unlikely]]
    return clear_python_cache(cache);
  const std::uint32_t era = g_code_era.load(std::memory_order_acquire);
  if (cache.era != era) [[unlikely]] {
    cache.era = era;
    cache.count = 0;
  }
  return ChainWalk(hook, state, cache, frame, cframe).stack();
}

PythonStack clear_python_cache(PythonCache& cache) noexcept {
  if (cache.count != 0) cache.count = 0;  // a thread without Python does not touch the page
  return {};
}

}  // namespace oomrec::stack
