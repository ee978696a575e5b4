#include "recorder/state/thread_state.h"

#include <sys/prctl.h>

#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "common/machine/page.h"
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

using session::kMostLanes;

// Threads with further names are in a group for all of these.
constexpr std::uint32_t kMaxGroups = 255;
constexpr std::string_view kOtherGroup = "other threads", kForgottenGroup = "forgotten stacks";
constexpr std::uint32_t kNamedGroups = kMaxGroups - 2;
constexpr std::size_t kGroupNameBytes = 16;  // as long as a thread's name
static_assert(kOtherGroup.size() <= kGroupNameBytes && kForgottenGroup.size() <= kGroupNameBytes);

struct Group {
  std::uint32_t node;
  char name[kGroupNameBytes];
};

// The states of neighbouring lanes are mapped together: a mapping of its own for each would stop
// all page faults of the process, which a thousand threads that start at once wait for. The first
// ones are few, because most programs have few threads and some have little address space.
constexpr std::uint32_t kMostStates = 16;  // in one mapping
struct StateGroup {
  std::uint32_t index;  // of the group
  std::uint32_t first;  // its first lane
};
constexpr StateGroup group_of_lane(std::uint32_t lane) noexcept {
  if (lane >= kMostStates)
    return {std::bit_width(kMostStates) - 2 + lane / kMostStates, lane / kMostStates * kMostStates};
  return {static_cast<std::uint32_t>(std::bit_width(lane)) - 1, std::bit_floor(lane)};
}
constexpr std::uint32_t states_in_group(std::uint32_t index) noexcept {
  return index < std::bit_width(kMostStates) - 1 ? 1u << index : kMostStates;
}
static_assert(states_in_group(0) == 1 && states_in_group(3) == 8 && states_in_group(4) == 16 &&
              states_in_group(5) == 16);
static_assert(group_of_lane(1).index == 0 && group_of_lane(15).index == 3 &&
              group_of_lane(16).index == 4 && group_of_lane(33).index == 5);
constexpr std::uint32_t kStateGroups = group_of_lane(kMostLanes - 1).index + 1;

struct Threads {
  std::atomic<ThreadState*> states[kStateGroups] = {};
  system::Mutex groups_lock;
  std::atomic<std::uint32_t> group_count{0};  // a counted group does not change
  Group groups[kMaxGroups] = {};
};
constinit Threads g_threads;

// Of a state whose thread has no lane any more, or not yet: hooks that a fork interrupted count
// here.
constinit session::Lane g_nobodys_lane{};

std::uint64_t seed(std::int32_t tid) noexcept {
  return system::monotonic_ns() ^ static_cast<std::uint64_t>(tid) << 40 ^
         reinterpret_cast<std::uintptr_t>(&tid);
}

void read_name(char (&name)[16]) noexcept {
  name[0] = '\0';
  system::call(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
  name[15] = '\0';
}

// The node of a group that a thread had before; 0: none had.
std::uint32_t known_group(std::string_view name) noexcept {
  const std::uint32_t count = g_threads.group_count.load(std::memory_order_acquire);
  for (const Group& group : std::span{g_threads.groups, count})
    if (std::string_view{group.name, strnlen(group.name, kGroupNameBytes)} == name)
      return group.node;
  return 0;
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

ThreadState* map_states(const StateGroup& group) noexcept {
  const std::size_t bytes = states_in_group(group.index) * sizeof(ThreadState);
  void* const mapping = system::map_private(bytes);
  if (mapping == nullptr) return nullptr;
  system::call(SYS_madvise, mapping, bytes, MADV_NOHUGEPAGE);
  // A child forked unseen finds an empty state, which is not quick.
  system::call(SYS_madvise, mapping, bytes, MADV_WIPEONFORK);
  ThreadState* states = nullptr;
  if (g_threads.states[group.index].compare_exchange_strong(states,
                                                            static_cast<ThreadState*>(mapping)))
    return static_cast<ThreadState*>(mapping);
  system::unmap(mapping, bytes);  // another thread was faster
  return states;
}

// The state of a lane, which only the lane's owner uses.
ThreadState* state_of(InHook hook, std::uint32_t lane) noexcept {
  if (lane == 0 || lane >= kMostLanes) return nullptr;
  const StateGroup group = group_of_lane(lane);
  ThreadState* states = g_threads.states[group.index].load(std::memory_order_acquire);
  if (states == nullptr) states = map_states(group);
  if (states == nullptr) return nullptr;
  ThreadState* const state = states + (lane - group.first);
  take_over(state);
  if (state->lane != nullptr && state->lane != &g_nobodys_lane) {  // from the lane's last owner
    stack::reset_thread(hook, state->stacks);
    return state;
  }
  state->lane = &g_session.lanes.at(lane);
  state->ring.use(*state->lane, g_session.ring(lane));
  state->sums.use(*state->lane, g_session.sums(lane), g_session.temporaries(lane));
  return state;
}

}  // namespace

ThreadState* thread_of_lane(std::uint32_t lane) noexcept {
  if (lane == 0 || lane >= kMostLanes) return nullptr;
  const StateGroup group = group_of_lane(lane);
  ThreadState* const states = g_threads.states[group.index].load(std::memory_order_acquire);
  return states == nullptr ? nullptr : states + (lane - group.first);
}

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

  session::Thread entry{};
  entry.tid = tid;
  entry.group = group == 0 ? 0 : session::argument_of(g_session.node(group).frame);
  std::memcpy(entry.name, name, sizeof(name));
  entry.first_seen_ns = now;
  const std::uint32_t thread = g_session.take_thread_entry(hook, entry);

  const std::uint32_t lane = g_session.acquire_lane(hook, tid, thread);
  ThreadState* const state = state_of(hook, lane);
  if (state == nullptr) {
    if (lane != 0) g_session.release_lane(hook, lane);
    drop();
    return nullptr;
  }
  release_roots(*state);
  state->thread = thread;
  state->released_node.store(0, std::memory_order_relaxed);
  state->failed = {};
  state->aftershock = {};
  state->last_block = state->last_torch_block = 0;
  state->roots[0] = state->common_root = group;
  session::g_node_states.refer(group);
  state->common_label = 0;
  state->events_to_clock = 0;
  // The first event takes the slow path, which stamps the ring with the thread.
  state->quick = state->exact_quick = false;
  if (!exact()) choose_path(*state);
  state->set_time(static_cast<std::uint32_t>((now - g_state.start_ns) / 1'000'000));
  state->sampler.start(seed(tid), g_state.interval_bytes.load(std::memory_order_relaxed));
  state->announced_arena_bytes = 0;
  state->object_shift = kFirstObjectShift;
  state->objects_in_window = 0;
  state->object_window_ms = state->time_ms;
  t_thread = state;
  restore_labels(hook, *state);
  fold_unlaned(hook, *state);
  return state;
}

bool may_be_quick() noexcept {
  if (phase() != Phase::active || g_state.heap_rules) return false;
  const auto limit = static_cast<std::int64_t>(g_state.limit.bytes());
  if (limit <= 0) return true;
  // A MiB, and what each thread may hold beyond what it has published.
  const auto far_bytes =
      static_cast<std::int64_t>((1 << 20) + g_session.lanes.size() * kPublishBytes);
  return live_bytes(nullptr) < limit - far_bytes;
}

void choose_path(ThreadState& thread) noexcept {
  const bool may = may_be_quick();
  thread.quick = may && !exact();
  thread.exact_quick = may && exact() && thread.ring.takes_plain() && thread.sums.has_sums() &&
                       g_state.small_blocks.shift() == kQuickShift;
}

std::uint32_t group_node(InHook hook, std::string_view name) noexcept {
  if (const std::uint32_t node = known_group(name)) return node;
  if (g_threads.group_count.load(std::memory_order_relaxed) >= kNamedGroups &&
      name != kForgottenGroup) {
    name = kOtherGroup;
    if (const std::uint32_t node = known_group(name)) return node;
  }
  const system::MutexGuard guard(g_threads.groups_lock);
  if (!guard) return 0;
  if (const std::uint32_t node = known_group(name)) return node;  // meanwhile
  const std::uint32_t count = g_threads.group_count.load(std::memory_order_relaxed);
  if (count == kMaxGroups) return g_threads.groups[0].node;
  const session::StringId text = g_session.add_string(hook, name);
  const std::uint32_t node =
      stack::intern(hook, 0, session::special_frame(SpecialFrame::thread_group, text));
  if (node == 0) return 0;
  session::g_node_states.refer(node);  // for ever
  Group& group = g_threads.groups[count];
  group = {node, {}};
  std::memcpy(group.name, name.data(), name.size());
  g_threads.group_count.store(count + 1, std::memory_order_release);
  return node;
}

// A fork's child gets a session once it has allocated its first MiB.
ThreadState* thread_for(InHook hook, std::uint64_t bytes) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr || phase() != Phase::waiting) return thread;
  add_shared(g_state.waiting_bytes, bytes);
  if (g_state.waiting_bytes.load(std::memory_order_relaxed) < kWaitingBytes) return nullptr;
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

void set_state_wiped(InHook, bool wiped) noexcept {
  ThreadState* const thread = registered_thread();
  if (thread == nullptr) return;
  const auto start = reinterpret_cast<std::uintptr_t>(thread);
  const std::uint64_t from = machine::page_down(start);
  const std::uint64_t to = machine::page_up(start + sizeof(ThreadState));
  system::call(SYS_madvise, from, to - from, wiped ? MADV_WIPEONFORK : MADV_KEEPONFORK);
}

void abandon_state(InHook) noexcept {
  if (t_thread == nullptr) return;
  t_thread->quick = t_thread->exact_quick = false;
  t_thread->lane = &g_nobodys_lane;
  for (auto& share : t_thread->unpublished) share.store(0, std::memory_order_relaxed);
}

void reset_threads_after_fork(InHook) noexcept {
  ThreadState* const own = t_thread;
  t_thread = nullptr;  // the child's only thread
  for (std::uint32_t index = 0; index < kStateGroups; ++index) {
    ThreadState* const states = g_threads.states[index].load(std::memory_order_relaxed);
    if (states == nullptr) continue;
    const std::size_t bytes = states_in_group(index) * sizeof(ThreadState);
    if (own >= states && own < states + states_in_group(index)) {
      // A signal handler may have forked between a hook's look at the state and its use.
      system::call(SYS_madvise, states, bytes, MADV_DONTNEED);  // where the kernel does not wipe it
      own->lane = &g_nobodys_lane;
      own->ring.use(g_nobodys_lane, nullptr);
    } else {
      g_threads.states[index].store(nullptr, std::memory_order_relaxed);
      system::unmap(states, bytes);
    }
  }
  g_threads.groups_lock.unlock();
  g_threads.group_count = 0;
}

}  // namespace oomrec::recorder
