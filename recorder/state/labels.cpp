#include "recorder/state/labels.h"

#include <algorithm>
#include <cstring>

#include "common/system/files.h"
#include "common/text/frames.h"
#include "common/text/text.h"
#include "recorder/session/free_numbers.h"
#include "recorder/session/index.h"
#include "recorder/session/private_array.h"
#include "recorder/session/writer.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/stack.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::g_session;
using session::SpecialFrame;
using session::StringId;

namespace {

// A text that is a label. Its frame refers to it by the id of its text.
struct Label {
  std::atomic<StringId> id;  // 0: not in use
  std::uint32_t idle;  // rounds of forgetting in which no stack had it; kIdleRounds: not found
  std::uint64_t hash;
};
constexpr std::uint32_t kIdleRounds = 2;

// Labels by their text, read without the lock. An entry that no stack has is used again.
struct Labels {
  system::Mutex lock;
  std::uint32_t size = 1;  // of the entries; entry 0 means none
  std::uint32_t in_use = 0;
  std::uint32_t asked = 0;  // for a round of forgetting, since there was one for it
  StringId other = 0;
  session::Index<session::Outgrown::keep> index;
  session::FreeNumbers free;
  session::PrivateArray<Label, kMaxLabels> entries;
  std::atomic<StringId> of_main{0};  // the main thread's innermost; 0: none
};
constinit Labels g_labels;

// Labels of a fork's child that has no session yet. Only its first thread reads and writes them.
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

// The root of this thread's stacks while it has labels, else 0. Outside ThreadState, which a
// fork wipes.
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
    hash = session::mix(hash ^ word);
    text.remove_prefix(bytes);
  }
  return hash;
}

// The entry with this text; 0: there is none.
std::uint32_t find(std::string_view text, std::uint64_t hash) noexcept {
  return g_labels.index.find(hash, [&](std::uint32_t number) {
    const Label* const label = g_labels.entries.find(number);
    return label != nullptr && g_session.view().string(label->id) == text;
  });
}

// Now and then: a round of forgetting may leave out labels that are still in a ring.
void ask_for_round() noexcept {
  if (++g_labels.asked <= kManyLabels / 2) return;
  g_labels.asked = 0;
  session::g_forget_at.store(0, std::memory_order_relaxed);
}

StringId add(InHook hook, std::string_view text, std::uint64_t hash) noexcept {
  const system::MutexGuard guard(g_labels.lock);
  if (!guard) return 0;
  if (const std::uint32_t known = find(text, hash)) return g_labels.entries.find(known)->id;
  std::uint32_t number = g_labels.free.take(1);
  if (number == 0 && g_labels.size < kMaxLabels && g_labels.entries.prepare(hook, g_labels.size))
    number = g_labels.size++;
  if (number == 0) {
    ask_for_round();
    if (g_labels.other == 0) g_labels.other = g_session.add_string(hook, "other");
    return g_labels.other;
  }
  Label* const found = g_labels.entries.find(number);
  if (found == nullptr) return 0;  // not of a number that was taken
  Label& label = *found;
  label.id = g_session.take_text(hook, text);
  label.hash = hash;
  label.idle = 0;
  if (label.id == 0 || !g_labels.index.insert(hook, hash, number)) {
    g_session.give_text(hook, label.id.exchange(0));
    g_labels.free.give_back(hook, number);
    return 0;
  }
  if (++g_labels.in_use > kManyLabels) ask_for_round();
  return label.id;
}

StringId id_of(InHook hook, std::string_view text) noexcept {
  const std::uint64_t hash = hash_of(text);
  const std::uint32_t found = find(text, hash);
  return found != 0 ? g_labels.entries.find(found)->id.load() : add(hook, text, hash);
}

std::uint32_t label_node(InHook hook, std::uint32_t parent, StringId label) noexcept {
  if (label == 0) return parent;
  const std::uint32_t node =
      stack::intern(hook, parent, session::special_frame(SpecialFrame::context, label));
  return node == 0 ? parent : node;
}

StringId innermost(const ThreadState& thread) noexcept {
  if (thread.context_depth == 0) return 0;
  const std::uint64_t frame = g_session.node(thread.labelled_root()).frame;
  return session::special_of(frame) == SpecialFrame::context ? session::argument_of(frame) : 0;
}

// After a push the common label is this thread's. After a pop it is this thread's next one, or else
// the main thread's.
enum class Change : std::uint8_t { push, pop };
void publish_common_label(const ThreadState& thread, Change change) noexcept {
  const auto tid =
      static_cast<std::uint32_t>(thread.lane->owner_tid.load(std::memory_order_relaxed));
  const auto main = static_cast<std::uint32_t>(g_state.pid);
  const StringId label = innermost(thread);
  if (tid == main) g_labels.of_main.store(label, std::memory_order_relaxed);
  std::uint64_t before = g_common_label.load(std::memory_order_relaxed);
  if (change == Change::pop && before >> 32 != tid) return;
  std::uint64_t now = std::uint64_t{tid} << 32 | label;
  if (label == 0) {
    const StringId of_main = g_labels.of_main.load(std::memory_order_relaxed);
    now = of_main == 0 ? 0 : std::uint64_t{main} << 32 | of_main;
  }
  if (change == Change::push) return g_common_label.store(now, std::memory_order_relaxed);
  g_common_label.compare_exchange_strong(before, now, std::memory_order_relaxed);
}

void push(InHook hook, ThreadState& thread, std::string_view text) noexcept {
  const std::uint32_t parent = thread.labelled_root();
  if (++thread.context_depth > kMaxContexts) return;
  {
    const NodeScope nodes{hook, &thread};
    const std::uint32_t node = label_node(hook, parent, id_of(hook, text));
    session::g_node_states.refer(node);  // until it is popped
    thread.roots[thread.context_depth] = node;
  }
  t_labelled_root = thread.roots[thread.context_depth];
  publish_common_label(thread, Change::push);
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
  if (thread->context_depth == 0) return;
  if (thread->context_depth <= kMaxContexts)
    session::g_node_states.release(thread->roots[thread->context_depth]);
  if (--thread->context_depth >= kMaxContexts) return;
  t_labelled_root = thread->context_depth == 0 ? 0 : thread->labelled_root();
  publish_common_label(*thread, Change::pop);
}

void adopt_common_label(InHook hook, ThreadState& thread) noexcept {
  const NodeScope nodes{hook, &thread};
  const std::uint32_t before = thread.common_root;
  thread.common_label = g_common_label.load(std::memory_order_relaxed);
  thread.common_root =
      label_node(hook, thread.roots[0], static_cast<StringId>(thread.common_label));
  session::g_node_states.refer(thread.common_root);
  session::g_node_states.release(before);
}

void release_roots(ThreadState& thread) noexcept {
  for (std::uint32_t at = std::min(thread.context_depth, kMaxContexts); at != 0; --at)
    session::g_node_states.release(thread.roots[at]);
  session::g_node_states.release(thread.common_root);
  thread.context_depth = 0;
  thread.common_root = 0;
}

std::string_view label_of(std::uint32_t node) noexcept {
  return text::label_of(g_session.view(), node);
}

void save_labels(InHook) noexcept {
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
  forget_labels();
}

void forget_labels() noexcept {
  t_labelled_root = 0;
  g_common_label.store(0, std::memory_order_relaxed);
  g_labels.lock.unlock();
  g_labels.of_main.store(0, std::memory_order_relaxed);
  g_labels.other = 0;
  if (g_labels.size == 1) return;
  const InHook hook = OutsideHooks::in_hook();
  g_labels.size = 1;
  g_labels.in_use = 0;
  g_labels.index.reset(hook);
  g_labels.free.reset(hook);
  g_labels.entries.reset(hook);
}

// A label that a thread has just found may still get a stack in this round, but not in a later one.
bool forget_idle_labels(InHook hook, std::uint32_t& at, std::uint32_t most) noexcept {
  const system::TryGuard guard(g_labels.lock);
  if (!guard) return false;
  for (const std::uint32_t end = std::min(at + most, g_labels.size); at < end; ++at) {
    Label* const found = g_labels.entries.find(at);
    if (found == nullptr || found->id == 0) continue;
    Label& label = *found;
    const bool in_use =
        stack::is_frame_in_use(hook, session::special_frame(SpecialFrame::context, label.id));
    if (in_use) {
      if (label.idle < kIdleRounds) label.idle = 0;
      continue;
    }
    if (++label.idle == kIdleRounds)
      g_labels.index.erase(label.hash, [&](std::uint32_t number) { return number == at; });
    if (label.idle <= kIdleRounds) continue;
    g_session.give_text(hook, label.id.exchange(0));
    --g_labels.in_use;
    g_labels.free.give_back(hook, at);
  }
  return at >= g_labels.size;
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
