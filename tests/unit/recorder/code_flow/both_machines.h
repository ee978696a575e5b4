// What holds on every machine, of code that its file gives in kSamples. The file includes this
// once.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "recorder/code_flow/result_flow.h"

namespace oomrec::code_flow {

inline constexpr std::uint64_t kGood = 0x7e55'5555'5010;

struct Sample {
  std::vector<std::uint8_t> code;
  std::size_t at = 0;  // where the program crashed, in bytes, in the active function
  std::size_t later = 0;
  std::vector<std::uint8_t> caller{};
  std::uint64_t offset = 0;  // of the address of the fault from the result
};

// The comments in a machine's file show the code.
struct Samples {
  std::vector<std::uint8_t> returns;
  Sample slots, registers, lost;
  Sample only_on_failure;
  Sample aborts;
  Sample unknown_turn;
  Sample map_failed;
  std::vector<Sample> stored;
  Sample stored_if_checked, stored_after_unknown;
  Sample returns_failure, returns_result;
  Sample leaves_frame, leaves_with_result, keeps_frame, jumps_by_table;
  std::vector<Sample> selected;
  Sample passes_result, passes_other;
  std::vector<Sample> not_followed;
  Sample unset, unset_or_replaced, unset_and_passed;
  Sample loops;
};
extern const Samples kSamples;

// The code after a failed call, its caller's code, and a stack of two frames.
struct Program {
  explicit Program(const Sample& sample)
      : code(sample.code), caller_code(sample.caller.empty() ? kSamples.returns : sample.caller) {
    constexpr std::size_t kPadding = 16;
    constexpr std::uint8_t kNoInstruction = 0x06;  // of any machine
    code.resize(code.size() + kPadding, kNoInstruction);
    caller_code.resize(caller_code.size() + kPadding, kNoInstruction);
  }

  // `offset`: in bytes, in the active function.
  ResultFlow crash_at(std::size_t offset, bool exact, std::uint64_t address = 0) {
    const auto low = reinterpret_cast<std::uint64_t>(stack);
    const stack::Activation frames[] = {{address_of(code) + start, low + 32, low + 112},
                                        {address_of(caller_code), low + 128, 0},
                                        {address_of(caller_code), low + 192, 0}};
    return follow_result(OutsideHooks::in_hook(),
                         {.frames = frames,
                          .active = active,
                          .at = address_of(active == 0 ? code : caller_code) + offset,
                          .exact = exact,
                          .aborted = aborted,
                          .fault_address = address,
                          .divided = divided,
                          .failed_result = failed,
                          .good_result = kGood,
                          .stored_by = stored_by,
                          .ambiguous = ambiguous});
  }

  static std::uint64_t address_of(const std::vector<std::uint8_t>& bytes) {
    return reinterpret_cast<std::uint64_t>(bytes.data());
  }
  std::vector<std::uint8_t> code, caller_code;
  std::size_t start = 0;  // of what follows the call
  std::uint64_t failed = 0;
  std::uint8_t stored_by = Question::kNone;
  bool ambiguous = false;
  std::uint32_t active = 0;
  bool aborted = false;
  bool divided = false;
  alignas(16) std::uint8_t stack[256] = {};
};

inline Program with_active(std::uint32_t active, const Sample& sample) {
  Program program{sample};
  program.active = active;
  return program;
}

// Where fewer than two frames are known.
inline ResultFlow flow_of_one_frame() {
  const stack::Activation alone[] = {{0, 0, 0}};
  return follow_result(OutsideHooks::in_hook(), {.frames = alone,
                                                 .active = 1,
                                                 .at = 0,
                                                 .exact = true,
                                                 .aborted = false,
                                                 .fault_address = 0,
                                                 .failed_result = 0,
                                                 .good_result = kGood});
}

TEST_CASE("an address computed from the result, unoptimized and optimized") {
  Program slots{kSamples.slots};
  CHECK(slots.crash_at(kSamples.slots.at, true, 0x10).derived);
  CHECK_FALSE(slots.crash_at(kSamples.slots.at, true, 0x18).derived);  // not that of the fault
  CHECK(Program{kSamples.registers}.crash_at(kSamples.registers.at, true, 0x5010).derived);
  CHECK_FALSE(Program{kSamples.lost}.crash_at(kSamples.lost.at, true, 0).derived);
}

TEST_CASE("a place that only a failure leads to") {
  Program program{kSamples.only_on_failure};
  const ResultFlow inside = program.crash_at(kSamples.only_on_failure.at, false);
  CHECK(inside.checked);
  CHECK(inside.only_on_failure);
  CHECK_FALSE(inside.regardless);
  const ResultFlow after = program.crash_at(kSamples.only_on_failure.later, false);
  CHECK(after.checked);
  CHECK(after.regardless);
  CHECK_FALSE(after.only_on_failure);
  CHECK_FALSE(after.unchecked);
}

TEST_CASE("a call that aborts the program never returns, wherever it is made") {
  Program program{kSamples.aborts};
  CHECK(program.crash_at(kSamples.aborts.at, false).regardless);
  program.aborted = true;
  CHECK(program.crash_at(kSamples.aborts.at, false).only_on_failure);
}

TEST_CASE("the way that takes no unknown turn is the one the program took") {
  const ResultFlow flow = Program{kSamples.unknown_turn}.crash_at(kSamples.unknown_turn.at, false);
  CHECK(flow.only_on_failure);
  CHECK_FALSE(flow.regardless);
}

TEST_CASE("MAP_FAILED is compared with -1") {
  Program program{kSamples.map_failed};
  program.failed = ~std::uint64_t{0};
  CHECK(program.crash_at(kSamples.map_failed.at, false).only_on_failure);
  program.failed = 0;
  CHECK_FALSE(program.crash_at(kSamples.map_failed.at, false).only_on_failure);
}

TEST_CASE("an unchecked result that is kept, in functions that have returned") {
  for (const Sample& sample : kSamples.stored) {
    const ResultFlow stored = with_active(2, sample).crash_at(0, true);
    CHECK(stored.unchecked);
    CHECK(stored.kept);
  }
  const ResultFlow checked = with_active(2, kSamples.stored_if_checked).crash_at(0, true);
  CHECK(checked.checked);
  CHECK_FALSE(checked.kept);
  const ResultFlow unknown = with_active(2, kSamples.stored_after_unknown).crash_at(0, true);
  CHECK_FALSE(unknown.unchecked);
  CHECK(unknown.kept);
}

TEST_CASE("what a function returns is followed in its caller") {
  Program program = with_active(1, kSamples.returns_failure);
  CHECK(program.crash_at(kSamples.returns_failure.at, false).only_on_failure);
  CHECK(program.crash_at(kSamples.returns_failure.later, false).regardless);
  const Sample& wrapper = kSamples.returns_result;
  CHECK(with_active(1, wrapper).crash_at(0, true, wrapper.offset).derived);
}

TEST_CASE("a tail call through a linkage table returns to the caller") {
  CHECK(with_active(1, kSamples.leaves_frame).crash_at(0, true).regardless);
  // Nothing is known of what it returns, as of any call.
  const Sample& returned = kSamples.leaves_with_result;
  CHECK_FALSE(with_active(1, returned).crash_at(0, true, returned.offset).derived);
  // With the frame still there: not a tail call. Nor is a jump through a switch's table.
  for (const Sample* sample : {&kSamples.keeps_frame, &kSamples.jumps_by_table})
    CHECK_FALSE(with_active(1, *sample).crash_at(0, true).regardless);
}

TEST_CASE("a value that a comparison selects counts as a check") {
  for (const Sample& sample : kSamples.selected)
    CHECK(with_active(1, sample).crash_at(sample.at, false).only_on_failure);
}

TEST_CASE("an argument of the call in which the program crashed") {
  CHECK(Program{kSamples.passes_result}.crash_at(kSamples.passes_result.at, false).argument);
  CHECK_FALSE(Program{kSamples.passes_other}.crash_at(kSamples.passes_other.at, false).argument);
}

TEST_CASE("code that cannot be followed decides nothing") {
  for (const Sample& sample : kSamples.not_followed) {
    const ResultFlow flow = Program{sample}.crash_at(sample.at, false);
    CHECK_FALSE(flow.checked);
    CHECK_FALSE(flow.only_on_failure);
    CHECK_FALSE(flow.regardless);
    CHECK_FALSE(flow.derived);
  }
  CHECK_FALSE(flow_of_one_frame().kept);
}

TEST_CASE("a pointer that a failed call has not set is what it was before") {
  constexpr std::uint64_t kOld = 0x5000, kNoAddress = 0x6161'6161'6161'6161;
  const auto after_call = [&](const Sample& sample) {
    Program program{sample};
    program.start = sample.later;
    program.failed = ~std::uint64_t{0};
    program.stored_by = 0;
    std::memcpy(program.stack + 32 + 8, &kOld, sizeof kOld);
    return program;
  };
  Program unset = after_call(kSamples.unset);
  const std::size_t at = kSamples.unset.at;
  CHECK(unset.crash_at(at, true, kOld).derived);
  CHECK_FALSE(unset.crash_at(at, true, kOld + 8).derived);
  const Sample& replaced = kSamples.unset_or_replaced;
  CHECK_FALSE(after_call(replaced).crash_at(replaced.at, true, kOld).derived);
  std::memcpy(unset.stack + 32 + 8, &kNoAddress, sizeof kNoAddress);
  CHECK(unset.crash_at(at, true, 0).derived);  // the kernel reports no address
  unset.stored_by = Question::kNone;
  CHECK_FALSE(unset.crash_at(at, true, 0).derived);
  Program passed = after_call(kSamples.unset_and_passed);
  const ResultFlow flow = passed.crash_at(kSamples.unset_and_passed.at, false, kOld + 0x100);
  CHECK(flow.derived);
  CHECK(flow.argument);
  CHECK_FALSE(passed.crash_at(kSamples.unset_and_passed.at, false, 0x90'0000).derived);
}

TEST_CASE("a loop that ends with the failed call, which may end it for another reason as well") {
  Program program{kSamples.loops};
  program.start = kSamples.loops.later;
  program.failed = ~std::uint64_t{0};
  CHECK(program.crash_at(kSamples.loops.at, false).only_on_failure);
  program.ambiguous = true;
  CHECK_FALSE(program.crash_at(kSamples.loops.at, false).only_on_failure);
}

}  // namespace oomrec::code_flow
