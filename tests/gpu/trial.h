// One trial for each row of a driver's table: a failing call, the same call succeeding, and checks
// of the recording.
//
// A row's function is `trial_NAME`; a missing one is a compiler error. Calls use the second device
// (ordinal 1), so that a charge to the wrong device is noticed.
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

// fake_gpu_fail() of the tested driver.
inline void (*g_fail)(const char* rules) = nullptr;

struct Expected {
  Space space;
  std::uint64_t bytes = 0;      // allocated or freed
  std::uint64_t asked = bytes;  // as recorded for a failure
  int ordinal = kOrdinal;
};

struct Snapshot {
  std::int64_t bytes, count;
  std::uint64_t failures;
  explicit Snapshot(Space space)
      : bytes(own_session::live_bytes(space)),
        count(own_session::live_count(space)),
        failures(own_session::failures()) {}
};

// Makes the driver fail the call, which must return the driver's result.
template <class Call>
void fail(const Call& call) {
  g_fail((std::string(g_row->name) + "=2").c_str());
  CHECK(call() == 2);
  g_fail("");
}

template <class Call>
void check_failure(const Expected& expected, const Call& call) {
  const Snapshot before(expected.space);
  fail(call);
  const Snapshot after(expected.space);
  CHECK(after.bytes == before.bytes);
  REQUIRE(after.failures == before.failures + 1);
  const own_session::Failure failure = own_session::last_failure();
  CHECK(failure.api == g_row->api);
  CHECK(failure.space == expected.space);
  CHECK(failure.bytes == expected.asked);
  CHECK(failure.error == 2);
  CHECK(failure.ordinal == expected.ordinal);
  CHECK_FALSE(failure.by_us);
  CHECK(own_session::is_on_stack(failure.node, std::string("trial_") + g_row->name));
}

// The only GPU event since the last call.
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

// An allocation: fails, then succeeds with the address in `out`.
template <class Out, class Call>
void gives(const Expected& expected, const Out& out, const Call& call) {
  check_failure(expected, call);
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

// A free: nothing is freed if the call fails.
template <class Call>
void takes(const Expected& expected, const Call& call) {
  const Snapshot before(expected.space);
  fail(call);
  CHECK(Snapshot(expected.space).bytes == before.bytes);
  CHECK(Snapshot(expected.space).count == before.count);
  CHECK(Snapshot(expected.space).failures == before.failures);
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

// A call without its own record, but with recorded failures.
template <class Call>
void may_fail(const Expected& expected, const Call& call) {
  check_failure(expected, call);
  own_session::new_events();
  CHECK(call() == 0);
  CHECK(own_session::new_events().empty());
}

// Neither is recorded. Effects on other calls are tested elsewhere.
template <class Call>
void passes(const Call& call) {
  const std::uint64_t before = own_session::failures();
  fail(call);
  CHECK(own_session::failures() == before);
  CHECK(call() == 0);
}

// A lookup of a function.
template <class Function>
void look_up(void* library, const char* name, Function& to) {
  void* const found = dlsym(library, name);
  REQUIRE_MESSAGE(found != nullptr, name);
  to = reinterpret_cast<Function>(found);
}

inline void need(int result) { REQUIRE(result == 0); }

// Address space: no memory is allocated or freed.
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

// A graph's block at address `block` that is not live.
template <class Out, class Call>
void adds_a_block(const Expected& expected, const Out& block, const Call& add) {
  check_failure({expected.space, 0, kBytes}, add);
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

// Runs all rows of a table. No trial leaves memory behind.
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

#define OOMREC_TRIAL(name) OOMREC_TRIAL_OF(name)  // which may itself be a macro's
#define OOMREC_TRIAL_OF(name) extern "C" void trial_##name()

// Common forms. `arguments` and `after` may use `out`, which the call sets.
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
#define MAY_BE_REFUSED(name, Type, arguments, after)     \
  OOMREC_TRIAL(name) {                                   \
    [[maybe_unused]] Type out{};                         \
    may_fail({kMain}, [&] { return f.name arguments; }); \
    need(after);                                         \
  }
