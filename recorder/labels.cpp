#include "recorder/labels.h"

#include <cstring>

#include "common/system/files.h"
#include "common/text/frames.h"
#include "common/text/json_check.h"
#include "recorder/live/index.h"
#include "recorder/recorder.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state.h"
#include "recorder/threads.h"

namespace oomrec::recorder {

using session::g_session;
using session::SpecialFrame;
using session::StringId;

namespace {

constexpr std::uint32_t kPlaces = 2 * kMaxLabels;  // a power of two

// Texts by their hash: {half of the hash, StringId} in a word; 0: free. Read without the lock.
struct Labels {
  system::SpinLock lock;
  std::uint32_t count = 0;
  StringId other = 0;
  std::atomic<std::uint64_t> places[kPlaces] = {};
  std::atomic<StringId> of_main{0};  // the main thread's innermost; 0: none
};
constinit Labels g_labels;

// Of a fork's child, which has no session yet: of its first thread, which alone reads and writes
// them.
struct Waiting {
  std::uint32_t depth = 0;
  std::uint32_t bytes[kMaxContexts] = {};
  char text[kMaxContexts][kLabelTextBytes] = {};

  void push(std::string_view label) noexcept {
    if (depth++ >= kMaxContexts) return;
    bytes[depth - 1] = static_cast<std::uint32_t>(label.size());
    std::memcpy(text[depth - 1], label.data(), label.size());
  }
};
constinit Waiting g_waiting;

bool waits_here() noexcept {
  return phase() == Phase::waiting && system::thread_id() == g_state.pid;
}

// The root of this thread's stacks while it has labels; else 0. Outlives a fork, which wipes
// ThreadState.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t t_labelled_root = 0;

std::string_view cut(std::string_view text) noexcept {
  if (text.size() <= kLabelTextBytes) return text;
  std::size_t bytes = 0;
  for (std::size_t next = 0; next <= kLabelTextBytes; bytes = next) {
    next += text::utf8_bytes(text.substr(next)) != 0 ? text::utf8_bytes(text.substr(next)) : 1;
    if (next > kLabelTextBytes) break;
  }
  return text.substr(0, bytes);
}

std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = text.size();
  while (!text.empty()) {
    std::uint64_t word = 0;
    const std::size_t bytes = text.size() < sizeof word ? text.size() : sizeof word;
    std::memcpy(&word, text.data(), bytes);
    hash = live::mix(hash ^ word);
    text.remove_prefix(bytes);
  }
  return hash;
}

// The text's id, or 0 and the place where it belongs.
StringId find(std::string_view text, std::uint64_t hash, std::uint64_t& place) noexcept {
  for (place = hash % kPlaces;; place = (place + 1) % kPlaces) {
    const std::uint64_t word = g_labels.places[place].load(std::memory_order_acquire);
    if (word == 0) return 0;
    const auto id = static_cast<StringId>(word);
    if (word >> 32 == hash >> 32 && g_session.view().string(id) == text) return id;
  }
}

StringId add(InHook hook, std::string_view text, std::uint64_t hash) noexcept {
  const system::SpinGuard guard(g_labels.lock);
  if (!guard) return 0;
  std::uint64_t place = 0;
  if (const StringId known = find(text, hash, place)) return known;
  if (g_labels.count == kMaxLabels) {
    if (g_labels.other == 0) g_labels.other = g_session.add_string(hook, "other");
    return g_labels.other;
  }
  const StringId id = g_session.add_string(hook, text);
  if (id == 0) return 0;
  ++g_labels.count;
  g_labels.places[place].store((hash >> 32 << 32) | id, std::memory_order_release);
  return id;
}

StringId id_of(InHook hook, std::string_view text) noexcept {
  const std::uint64_t hash = hash_of(text);
  std::uint64_t place = 0;
  const StringId known = find(text, hash, place);
  return known != 0 ? known : add(hook, text, hash);
}

std::uint32_t below(InHook hook, std::uint32_t parent, StringId label) noexcept {
  if (label == 0) return parent;
  const std::uint32_t node =
      stack::intern(hook, parent, session::special_frame(SpecialFrame::context, label));
  return node == 0 ? parent : node;
}

StringId innermost(const ThreadState& thread) noexcept {
  if (thread.context_depth == 0) return 0;
  const std::uint64_t frame = g_session.nodes.at(thread.labelled_root()).frame;
  return session::special_of(frame) == SpecialFrame::context ? session::argument_of(frame) : 0;
}

// Whose label is the common one: this thread's when it has just pushed; when it has popped its own,
// what is left of it, and then the main thread's.
void tell_common(const ThreadState& thread, bool pushed) noexcept {
  const auto tid =
      static_cast<std::uint32_t>(thread.lane->owner_tid.load(std::memory_order_relaxed));
  const auto main = static_cast<std::uint32_t>(g_state.pid);
  const StringId label = innermost(thread);
  if (tid == main) g_labels.of_main.store(label, std::memory_order_relaxed);
  std::uint64_t before = g_common_label.load(std::memory_order_relaxed);
  if (!pushed && before >> 32 != tid) return;
  std::uint64_t now = std::uint64_t{tid} << 32 | label;
  if (label == 0) {
    const StringId of_main = g_labels.of_main.load(std::memory_order_relaxed);
    now = of_main == 0 ? 0 : std::uint64_t{main} << 32 | of_main;
  }
  if (pushed) return g_common_label.store(now, std::memory_order_relaxed);
  g_common_label.compare_exchange_strong(before, now, std::memory_order_relaxed);
}

void push(InHook hook, ThreadState& thread, std::string_view text) noexcept {
  const std::uint32_t parent = thread.labelled_root();
  if (++thread.context_depth > kMaxContexts) return;
  thread.roots[thread.context_depth] = below(hook, parent, id_of(hook, text));
  t_labelled_root = thread.roots[thread.context_depth];
  tell_common(thread, true);
}

}  // namespace

void push_context(InHook hook, std::string_view text) noexcept {
  if (phase() == Phase::off) return;
  text = cut(text);
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr) return push(hook, *thread, text);
  if (waits_here()) g_waiting.push(text);
}

void pop_context(InHook hook) noexcept {
  if (phase() == Phase::off) return;
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) {
    if (waits_here() && g_waiting.depth != 0) --g_waiting.depth;
    return;
  }
  if (thread->context_depth == 0 || --thread->context_depth >= kMaxContexts) return;
  t_labelled_root = thread->context_depth == 0 ? 0 : thread->labelled_root();
  tell_common(*thread, false);
}

void adopt_common_label(InHook hook, ThreadState& thread) noexcept {
  thread.common_label = g_common_label.load(std::memory_order_relaxed);
  thread.common_root = below(hook, thread.roots[0], static_cast<StringId>(thread.common_label));
}

std::string_view label_of(std::uint32_t node) noexcept {
  return text::label_of(g_session.view(), node);
}

void keep_labels(InHook) noexcept {
  const session::View parent = g_session.view();
  std::string_view texts[kMaxContexts];
  std::uint32_t count = 0;
  parent.walk(t_labelled_root, [&](std::uint64_t frame) noexcept {
    if (count < kMaxContexts && session::kind_of(frame) == session::FrameKind::special &&
        session::special_of(frame) == SpecialFrame::context)
      texts[count++] = parent.string(session::argument_of(frame));
  });
  g_waiting.depth = 0;
  while (count != 0) g_waiting.push(cut(texts[--count]));
  t_labelled_root = 0;
  g_common_label.store(0, std::memory_order_relaxed);
  g_labels.lock.unlock();
  g_labels.of_main.store(0, std::memory_order_relaxed);
  g_labels.other = 0;
  if (g_labels.count == 0) return;
  g_labels.count = 0;
  for (auto& place : g_labels.places) place.store(0, std::memory_order_relaxed);
}

void restore_labels(InHook hook, ThreadState& thread) noexcept {
  t_labelled_root = 0;
  if (g_waiting.depth == 0 || thread.lane->owner_tid.load(std::memory_order_relaxed) != g_state.pid)
    return;
  const std::uint32_t depth = g_waiting.depth;
  g_waiting.depth = 0;
  for (std::uint32_t at = 0; at < depth && at < kMaxContexts; ++at)
    push(hook, thread, {g_waiting.text[at], g_waiting.bytes[at]});
  thread.context_depth = depth;
}

}  // namespace oomrec::recorder
