#include "recorder/stack/module_entries.h"

#include <algorithm>
#include <atomic>

#include "common/session/view.h"
#include "recorder/session/free_numbers.h"
#include "recorder/session/private_array.h"
#include "recorder/session/reuse.h"
#include "recorder/session/writer.h"

namespace oomrec::stack {
namespace {

using session::g_session;
using session::Module;

// What the recorder knows about an entry beside its content.
struct EntryState {
  std::uint32_t round;  // of forgetting: the last one that has found a frame of it
  bool is_owned;        // by a slot
  bool is_in_use;
};
constexpr std::uint32_t kMostEntries = 1u << 16;  // as many as a frame can name
constinit session::PrivateArray<EntryState, kMostEntries> g_states;
constinit session::FreeNumbers g_free;
constinit std::uint32_t g_versions = 0;  // of entries, so far

// Uses an entry again; 0: none is free. Until it is written, its version says that it changes.
std::uint32_t take_free(Module content) noexcept {
  const std::uint32_t id = g_free.take(1);
  if (id == 0) return 0;
  content.version = session::kModuleChanges;
  Module& entry = g_session.modules.at(id);
  session::store_words(entry, content);
  std::atomic_ref(entry.version).store(++g_versions, std::memory_order_release);
  return id;
}

std::uint32_t append(InHook hook, const Module& content) noexcept {
  std::uint32_t id = g_session.modules.size();
  if (!g_states.prepare(hook, id) ||
      !g_session.modules.append(hook, id, [&](Module& entry) { entry = content; }))
    return 0;
  return id;
}

void free_entry(InHook hook, std::uint32_t id, EntryState& state) noexcept {
  Module& entry = g_session.modules.at(id);
  const session::StringId path = entry.path;
  std::atomic_ref(entry.version).store(session::kModuleChanges, std::memory_order_relaxed);
  // A reader that sees what is written later also sees that the version has changed.
  std::atomic_thread_fence(std::memory_order_release);
  g_session.give_text(hook, path);
  state = {};
  g_free.give_back(hook, id);
}

void claim(std::uint64_t frame, std::uint32_t round) noexcept {
  if (session::kind_of(frame) != session::FrameKind::native) return;
  if (EntryState* const state = g_states.find(session::module_of(frame))) state->round = round;
}

}  // namespace

std::uint32_t add_module_entry(InHook hook, Module entry, std::string_view path) noexcept {
  entry.path = g_session.take_text(hook, path);
  std::uint32_t id = take_free(entry);
  if (id == 0) id = append(hook, entry);
  if (id == 0) {
    g_session.give_text(hook, entry.path);
    return 0;
  }
  *g_states.find(id) = {.round = 0, .is_owned = true, .is_in_use = true};
  return id;
}

void disown_module_entry(std::uint32_t id) noexcept {
  if (EntryState* const state = g_states.find(id)) state->is_owned = false;
}

void claim_modules(std::span<const std::uint64_t> frames, std::uint32_t round) noexcept {
  for (const std::uint64_t frame : frames) claim(frame, round);
}

void claim_modules(std::uint32_t first_frame, std::uint32_t end, std::uint32_t round) noexcept {
  for (std::uint32_t i = first_frame; i < end; ++i)
    claim(session::word_of(g_session.frames.at(i)).load(std::memory_order_relaxed), round);
}

bool is_module_claimed(std::uint32_t id, std::uint32_t round) noexcept {
  const EntryState* const state = g_states.find(id);
  return state != nullptr && state->round == round;
}

bool free_module_entries(InHook hook, std::uint32_t& at, std::uint32_t most,
                         std::uint32_t round) noexcept {
  const std::uint32_t size = g_session.modules.size();
  for (const std::uint32_t end = std::min(at + most, size); at < end; ++at) {
    EntryState* const state = g_states.find(at);
    if (state != nullptr && state->is_in_use && !state->is_owned && state->round != round)
      free_entry(hook, at, *state);
  }
  return at >= size;
}

void reset_module_entries(InHook hook) noexcept {
  g_states.reset(hook);
  g_free.reset(hook);
  g_versions = 0;
}

}  // namespace oomrec::stack
