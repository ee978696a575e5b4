// A simulated month: each ten events have a call path that there has not been before, to one of a
// hundred functions, and as many blocks are live at any time. Each free of a recorded block must
// find its stack, and at the end the recorder must not need a page more than after half of them,
// but for some more samples.
//
// OOMREC_MONTH_MODE: exact, sampled; OOMREC_MONTH_EVENTS: how many (10⁹ take some minutes).
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/bundle/process_group.h"
#include "recorder/session/node_states.h"
#include "tests/unit/recorder/forget/churn.h"

using namespace oomrec;
using namespace oomrec::running;

namespace {

constexpr std::uint32_t kPlaces = 1000, kBlocksOfStack = 5, kFunctionCount = 100;
// The time line and the checkpoints, which keep stacks, too, are whole after a quarter of them.
constexpr std::uint32_t kTicks = 4000;
constexpr std::uint64_t kFirst = 0x10'0000'0000, kApart = 512;

// Most in the side table, some as an entry of their own, of which sampled mode records each.
std::uint64_t bytes_of(std::uint32_t place) {
  return place % 16 == 0 ? 600'000 + place : 40 + place % 400;
}

// Of a block as its free finds it.
std::uint32_t stack_of(const recorder::Released& released) {
  const std::uint32_t node =
      released.holder != 0 ? session::g_session.holders.at(released.holder).node : released.node;
  if (node == 0 || session::g_node_states.load(node) == 0) return 0;
  return running::stack_of(session::g_session.node(node).parent);
}

struct Memory {
  std::uint64_t recording_bytes, index_bytes, resident_bytes;
};
Memory memory() {
  return {session::g_session.arena.populated_bytes(), session::g_index_bytes,
          bundle::resident_bytes(getpid())};
}

std::string text_of(const Memory& memory) {
  return "recording " + std::to_string(memory.recording_bytes) + " bytes, index " +
         std::to_string(memory.index_bytes) + ", resident " + std::to_string(memory.resident_bytes);
}

}  // namespace

TEST_CASE("a simulated month: no page more, and every block has its stack") {
  const char* const mode_wanted = std::getenv("OOMREC_MONTH_MODE");
  const char* const events = std::getenv("OOMREC_MONTH_EVENTS");
  const bool exact = mode_wanted == nullptr || std::strcmp(mode_wanted, "exact") == 0;
  const std::uint64_t blocks =
      (events != nullptr ? std::strtoull(events, nullptr, 10) : 20'000'000) / 2;
  need(exact ? Mode::exact : Mode::sampled);

  std::vector<std::uint32_t> stacks(kPlaces);  // the oracle; 0: no block
  std::mt19937_64 random{17};
  std::uint64_t checked = 0, wrong = 0, unrecorded = 0;
  Memory early = memory();  // the first time, which needs memory itself
  for (std::uint64_t i = 0; i < blocks; ++i) {
    if (i == blocks / 2) early = memory();
    if (i % (blocks / kTicks) == 0) tick();
    if (i % kBlocksOfStack == 0) doubles::t_function = 1 + new_stack() % kFunctionCount;
    const auto place = static_cast<std::uint32_t>(random() % kPlaces);
    const std::uint64_t address = kFirst + place * kApart, bytes = bytes_of(place);
    if (stacks[place] != 0) {
      const recorder::Released released = release(address, bytes);
      const bool is_recorded = released.holder != 0 || released.node != 0;
      (is_recorded ? checked : unrecorded) += 1;
      wrong += is_recorded && stack_of(released) != stacks[place];
    }
    allocate(address, bytes);
    stacks[place] = doubles::t_stack;
  }
  const Memory late = memory();
  const session::Header& header = session::g_session.header();
  MESSAGE(2 * blocks, " events, ", doubles::t_stack, " stacks, ", header.forgotten_stacks.load(),
          " forgotten; ", checked, " blocks checked, ", wrong, " wrong; ", text_of(early),
          ", then ", text_of(late));
  CHECK(wrong == 0);
  CHECK(checked > blocks / 50);
  CHECK(header.dropped_events == 0);
  CHECK(header.truncated_stacks == 0);
  // How many samples are live varies; the kernel counts resident pages a few late.
  const std::uint64_t more = exact ? 0 : 64 * 1024;
  CHECK(late.recording_bytes <= early.recording_bytes + more);
  CHECK(late.index_bytes <= early.index_bytes + more);
  CHECK(late.resident_bytes <= early.resident_bytes + more + 64 * 1024);
  if (!exact) return;
  CHECK(unrecorded == 0);
  const EverAllocated ever = ever_allocated();
  CHECK(ever.bytes == totals(Space::heap).allocated_bytes);
  CHECK(ever.count == totals(Space::heap).allocated_count);
  CHECK(holders_agree());
}
