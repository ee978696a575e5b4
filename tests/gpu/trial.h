// One trial for each row of a driver's table: a call that is refused and the same call that
// succeeds, and what the recorder made of them.
//
// A row's function is `trial_NAME`; a row without one is an error of the compiler. Calls go to the
// second device (ordinal 1), so that what is charged to the first is charged to the wrong one.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>
#include <string>

#include "tests/gpu/own_session.h"

namespace oomrec::gpu_trial {

using session::DeviceKey;
using session::Vendor;

inline constexpr std::uint64_t kBytes = 4 << 20;
inline constexpr int kOrdinal = 1;

struct Row {
  const char* name;
  Api api;
  void (*trial)();
};
inline const Row* g_row = nullptr;

// fake_gpu_fail() of the driver that is tried.
inline void (*g_fail)(const char* rules) = nullptr;

struct Expected {
  Space space;
  std::uint64_t bytes = 0;      // given, or taken
  std::uint64_t asked = bytes;  // as a refusal tells
  int ordinal = kOrdinal;
};

struct Snapshot {
  std::int64_t bytes, count;
  std::uint64_t refusals;
  explicit Snapshot(Space space)
      : bytes(own_session::live_bytes(space)),
        count(own_session::live_count(space)),
        refusals(own_session::refusals()) {}
};

// The call, refused by the driver: it returns what the driver returned.
template <class Call>
void refused(const Call& call) {
  g_fail((std::string(g_row->name) + "=2").c_str());
  CHECK(call() == 2);
  g_fail("");
}

template <class Call>
void refused_and_told(const Expected& expected, const Call& call) {
  const Snapshot before(expected.space);
  refused(call);
  const Snapshot after(expected.space);
  CHECK(after.bytes == before.bytes);
  REQUIRE(after.refusals == before.refusals + 1);
  const own_session::Refusal told = own_session::last_refusal();
  CHECK(told.api == g_row->api);
  CHECK(told.space == expected.space);
  CHECK(told.bytes == expected.asked);
  CHECK(told.error == 2);
  CHECK(told.ordinal == expected.ordinal);
  CHECK_FALSE(told.by_us);
  CHECK(own_session::is_on_stack(told.node, std::string("trial_") + g_row->name));
}

// The only event of a GPU since the last look.
inline session::Event only_event() {
  const auto events = own_session::new_events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].api == g_row->api);
  return events[0];
}

template <class Out>
std::uint64_t key_of(const Out& out) {
  if constexpr (requires { out.ptr; })
    return reinterpret_cast<std::uint64_t>(out.ptr);
  else
    return (std::uint64_t)out;
}

// Memory: refused, then given at `out`.
template <class Out, class Call>
void gives(const Expected& expected, const Out& out, const Call& call) {
  refused_and_told(expected, call);
  const Snapshot before(expected.space);
  own_session::new_events();
  REQUIRE(call() == 0);
  const Snapshot after(expected.space);
  CHECK(after.bytes == before.bytes + static_cast<std::int64_t>(expected.bytes));
  CHECK(after.count == before.count + 1);
  const session::Event event = only_event();
  CHECK(event.kind == EventKind::allocate);
  CHECK(event.space == expected.space);
  CHECK(event.bytes == expected.bytes);
  CHECK(event.address == key_of(out) % session::kRingAddresses);
  CHECK(own_session::ordinal_of(event.device) == expected.ordinal);
  CHECK(own_session::is_on_stack(event.stack, std::string("trial_") + g_row->name));
}

// Memory that goes: not when the call is refused.
template <class Call>
void takes(const Expected& expected, const Call& call) {
  const Snapshot before(expected.space);
  refused(call);
  CHECK(Snapshot(expected.space).bytes == before.bytes);
  CHECK(Snapshot(expected.space).count == before.count);
  CHECK(Snapshot(expected.space).refusals == before.refusals);
  own_session::new_events();
  REQUIRE(call() == 0);
  CHECK(Snapshot(expected.space).bytes == before.bytes - static_cast<std::int64_t>(expected.bytes));
  CHECK(Snapshot(expected.space).count == before.count - 1);
  const session::Event event = only_event();
  CHECK(event.kind == EventKind::free);
  CHECK(event.space == expected.space);
  CHECK(event.bytes == expected.bytes);
  CHECK(own_session::ordinal_of(event.device) == expected.ordinal);
}

// Nothing by name, but its refusal is told.
template <class Call>
void may_be_refused(const Expected& expected, const Call& call) {
  refused_and_told(expected, call);
  own_session::new_events();
  CHECK(call() == 0);
  CHECK(own_session::new_events().empty());
}

// Neither: what it says of other calls is another test's business.
template <class Call>
void passes(const Call& call) {
  const std::uint64_t before = own_session::refusals();
  refused(call);
  CHECK(own_session::refusals() == before);
  CHECK(call() == 0);
}

// Finds a client's way to a function.
template <class Function>
void look_up(void* library, const char* name, Function& to) {
  void* const found = dlsym(library, name);
  REQUIRE_MESSAGE(found != nullptr, name);
  to = reinterpret_cast<Function>(found);
}

inline void need(int result) { REQUIRE(result == 0); }

// Addresses: no memory comes or goes with them.
template <class Call>
void moves_addresses(EventKind kind, const Expected& expected, const Call& call) {
  const Snapshot before(expected.space);
  own_session::new_events();
  REQUIRE(call() == 0);
  const session::Event event = only_event();
  CHECK(event.kind == kind);
  CHECK(event.space == expected.space);
  CHECK(event.bytes == expected.bytes);
  CHECK(own_session::ordinal_of(event.device) == expected.ordinal);
  CHECK(Snapshot(expected.space).bytes == before.bytes);
}

// A block that its graph has at `block`, and that is not live.
template <class Out, class Call>
void adds_a_block(const Expected& expected, const Out& block, const Call& add) {
  refused_and_told({expected.space, 0, kBytes}, add);
  const Snapshot before(expected.space);
  own_session::new_events();
  REQUIRE(add() == 0);
  CHECK(own_session::new_events().empty());
  CHECK(Snapshot(expected.space).bytes == before.bytes);
  const auto known = own_session::block_at(DeviceKey::graph_block, key_of(block));
  REQUIRE(known.has_value());
  CHECK(known->bytes == kBytes);
  CHECK(known->ordinal == expected.ordinal);
  CHECK_FALSE(known->is_live);
}

// All rows of a table; no trial leaves memory behind.
template <std::size_t kRows>
void try_all(const Row (&rows)[kRows], std::initializer_list<Space> spaces) {
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    g_row = &row;
    std::int64_t before = 0, after = 0;
    for (const Space space : spaces) before += own_session::live_bytes(space);
    row.trial();
    for (const Space space : spaces) after += own_session::live_bytes(space);
    CHECK(after == before);
  }
}

}  // namespace oomrec::gpu_trial

#define OOMREC_TRIAL(name) extern "C" void trial_##name()

// The frequent forms. `arguments` and `after` may speak of `out`, which the call sets.
#define GIVES(name, Type, space, arguments, after)                 \
  OOMREC_TRIAL(name) {                                             \
    Type out{};                                                    \
    gives({space, kBytes}, out, [&] { return f.name arguments; }); \
    need(after);                                                   \
  }
#define TAKES(name, Type, space, before, arguments)           \
  OOMREC_TRIAL(name) {                                        \
    Type out{};                                               \
    need(before);                                             \
    takes({space, kBytes}, [&] { return f.name arguments; }); \
  }
#define MAY_BE_REFUSED(name, Type, arguments, after)           \
  OOMREC_TRIAL(name) {                                         \
    [[maybe_unused]] Type out{};                               \
    may_be_refused({kMain}, [&] { return f.name arguments; }); \
    need(after);                                               \
  }
