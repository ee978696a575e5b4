#include "recorder/state/thread_state.h"

#include <sys/prctl.h>

#include <cstring>
#include <string_view>

#include "common/session/view.h"
#include "common/system/files.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/counters.h"
#include "recorder/state/hand_over.h"

namespace oomrec::recorder {

using session::g_session;
using session::SpecialFrame;

namespace {

constexpr std::uint32_t kMaxLanes = 4096;
constexpr std::uint32_t kMaxGroups = 255;
constexpr std::size_t kGroupNameBytes = 16;  // as long as a thread's name

struct Group {
  std::uint32_t node;
  char name[kGroupNameBytes];
};

struct Threads {
  std::atomic<ThreadState*> by_lane[kMaxLanes] = {};
  system::Mutex groups_lock;
  std::uint32_t group_count = 0;
  Group groups[kMaxGroups] = {};
};
constinit Threads g_threads;

std::uint64_t seed(std::int32_t tid) noexcept {
  return system::monotonic_ns() ^ static_cast<std::uint64_t>(tid) << 40 ^
         reinterpret_cast<std::uintptr_t>(&tid);
}

void read_name(char (&name)[16]) noexcept {
  name[0] = '\0';
  system::call(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
  name[15] = '\0';
}

std::uint32_t group_of(InHook hook, std::int32_t tid, const char* name) noexcept {
  if (tid == g_state.pid) return group_node(hook, "main");
  char group[16];
  std::size_t bytes = 0;
  for (const char* c = name; *c != '\0'; ++c) {
    if (*c < '0' || *c > '9') group[bytes++] = *c;
  }
  const std::string_view found{group, bytes};
  return group_node(hook, found.empty() ? "thread" : found);
}

// The state of a lane: mapped for its first owner, reused by the next.
ThreadState* state_of(InHook hook, std::uint32_t lane) noexcept {
  if (lane == 0 || lane >= kMaxLanes) return nullptr;
  ThreadState* state = g_threads.by_lane[lane].load(std::memory_order_acquire);
  if (state != nullptr) {
    take_over(state);
    stack::reset_thread(hook, state->stacks);
    return state;
  }
  state = static_cast<ThreadState*>(system::map_private(sizeof(ThreadState)));
  if (state == nullptr) return nullptr;
  // A child forked unseen finds an empty state, which is not quick.
  system::call(SYS_madvise, state, sizeof(ThreadState), MADV_WIPEONFORK);
  state->lane = &g_session.lanes.at(lane);
  state->ring.use(*state->lane, g_session.ring(lane));
  state->sums.use(*state->lane, g_session.sums(lane), g_session.temporaries(lane));
  g_threads.by_lane[lane].store(state, std::memory_order_release);
  return state;
}

}  // namespace

ThreadState* register_thread(InHook hook) noexcept {
  if (g_state.generation->load(std::memory_order_relaxed) == 0) g_callbacks.fork_child(hook);
  if (phase() != Phase::active) return nullptr;

  // Tried only once, even if it fails.
  t_thread = nullptr;
  t_generation = g_state.generation->load(std::memory_order_relaxed);

  const std::int32_t tid = system::thread_id();
  char name[16];
  read_name(name);
  const std::uint32_t group = group_of(hook, tid, name);
  const std::uint64_t now = system::coarse_ns();

  std::uint32_t thread = 0;
  const bool entered = g_session.threads.append(hook, thread, [&](session::Thread& entry) noexcept {
    entry.tid = tid;
    entry.group = group == 0 ? 0 : session::argument_of(g_session.nodes.at(group).frame);
    std::memcpy(entry.name, name, sizeof(name));
    entry.first_seen_ns = now;
  });
  if (!entered) thread = 0;

  const std::uint32_t lane = g_session.acquire_lane(hook, tid, thread);
  ThreadState* const state = state_of(hook, lane);
  if (state == nullptr) {
    if (lane != 0) g_session.release_lane(hook, lane);
    drop();
    return nullptr;
  }
  state->thread = thread;
  state->context_depth = 0;
  state->failed = {};
  state->aftershock = {};
  state->last_block = state->last_torch_block = 0;
  state->roots[0] = state->common_root = group;
  state->common_label = 0;
  state->events_to_clock = 0;
  state->quick = is_quick();
  state->time_ms = static_cast<std::uint32_t>((now - g_state.start_ns) / 1'000'000);
  state->sampler.start(seed(tid), g_state.interval_bytes.load(std::memory_order_relaxed));
  t_thread = state;
  restore_labels(hook, *state);
  fold_unlaned(hook, *state);
  return state;
}

bool is_quick() noexcept {
  constexpr std::int64_t kFarBytes = 1 << 20;
  if (exact() || phase() != Phase::active || g_state.heap_rules) return false;
  const auto limit = static_cast<std::int64_t>(g_state.limit.bytes());
  return limit <= 0 || live_bytes(nullptr) < limit - kFarBytes;
}

std::uint32_t group_node(InHook hook, std::string_view name) noexcept {
  const system::MutexGuard guard(g_threads.groups_lock);
  if (!guard) return 0;
  for (std::uint32_t i = 0; i < g_threads.group_count; ++i) {
    const Group& group = g_threads.groups[i];
    if (std::string_view{group.name, strnlen(group.name, kGroupNameBytes)} == name)
      return group.node;
  }
  if (g_threads.group_count == kMaxGroups) return g_threads.groups[0].node;
  const session::StringId text = g_session.add_string(hook, name);
  const std::uint32_t node =
      stack::intern(hook, 0, session::special_frame(SpecialFrame::thread_group, text));
  if (node == 0) return 0;
  Group& group = g_threads.groups[g_threads.group_count++];
  group = {node, {}};
  std::memcpy(group.name, name.data(), name.size());
  return node;
}

// A fork's child gets a session once it has allocated its first MiB.
ThreadState* thread_for(InHook hook, std::uint64_t bytes) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr || phase() != Phase::waiting) return thread;
  if (g_state.waiting_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes < kWaitingBytes)
    return nullptr;
  return begin_waiting_session(hook) ? current_thread(hook) : nullptr;
}

void append_device_event(ThreadState& thread, EventKind kind, Api api, Space space,
                         std::uint32_t device, std::uint64_t key, std::uint64_t bytes,
                         std::uint32_t node) noexcept {
  thread.ring.append_device_event(thread.time_ms, thread.thread, kind,
                                  session::packed_location(api, space, device), key, bytes, node);
}

std::uint64_t served_to_all() noexcept {
  std::uint64_t count = 0;
  for (std::uint32_t lane = 1; lane < g_session.lanes.size(); ++lane)
    count += served_on(g_session.lanes.at(lane));
  return count;
}

void reset_threads_after_fork(InHook) noexcept {
  t_thread = nullptr;  // the child's only thread
  for (auto& state : g_threads.by_lane) {
    if (ThreadState* const mapped = state.exchange(nullptr))
      system::unmap(mapped, sizeof(ThreadState));
  }
  g_threads.groups_lock.unlock();
  g_threads.group_count = 0;
}

}  // namespace oomrec::recorder
