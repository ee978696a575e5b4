// The code after a failed call, its caller's code, and a stack of two frames.
#pragma once

#include <cstdint>
#include <vector>

#include "recorder/code_flow/result_flow.h"

namespace oomrec::code_flow {

inline constexpr std::uint64_t kGood = 0x7e55'5555'5010;

struct CodeUnderTest {
  CodeUnderTest(std::vector<std::uint8_t> bytes, std::vector<std::uint8_t> caller)
      : code(std::move(bytes)), caller_code(std::move(caller)) {
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

}  // namespace oomrec::code_flow
