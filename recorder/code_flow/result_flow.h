// What a program did with the result of a failed call, read from its machine code: whether it
// compared it, kept it, or used it as an address; and whether the place where the program crashed
// is reached only if the call fails.
//
// Follows the code from the call's return address twice, once with the result of a failure and once
// with that of a success, into the callers as far as the function that is still active. Whatever
// depends on other values is followed both ways; so is a loop, in which what changes is unknown.
// What a function returns only after a failure is its caller's result: strdup's NULL, an error
// code. Where the result is an error code, the pointer that the call should have set is followed as
// well, with what it had before. Reads code and the stack through the kernel.
#pragma once

#include <cstdint>
#include <span>

#include "common/system/hook_scope.h"
#include "recorder/stack/stack.h"

namespace oomrec::code_flow {

struct Question {
  std::span<const stack::Activation> frames;  // of the failed call: its caller first
  // So many innermost ones are the C library's, which reports a failure to its caller.
  std::uint32_t library_frames = 0;
  std::uint32_t active;  // of `frames`, the innermost that still exists; their number: none
  std::uint64_t at;      // in that function: the faulting instruction (`exact`), or …
  bool exact;            // … the return address of its current call
  bool aborted;          // that call never returns, wherever else it is made
  std::uint64_t fault_address;
  bool in_allocator = false;    // the C library's ended the program, in a call through our hook
  bool divided = false;         // the fault is that of a division by 0
  std::uint64_t failed_result;  // as the call returned it
  std::uint64_t good_result;    // what a success might have returned
  // The argument that points to where a success stores a pointer, such as asprintf's first (0).
  std::uint8_t stored_by = kNone;
  bool ambiguous = false;  // the call returns the same for other reasons, too: the end of a file

  static constexpr std::uint8_t kNone = 255;
};

struct ResultFlow {
  bool checked = false;          // a branch was decided by it
  bool unchecked = false;        // it was kept, passed or returned, and no branch may have checked
  bool kept = false;             // it was stored, or returned, where other functions find it
  bool lost = false;             // how the C library reported it to its caller is not known
  bool only_on_failure = false;  // the crash's place is reached only after a failure
  bool regardless = false;       // it is reached after a success as well
  // The fault address, or the divisor, was computed from it, or from a pointer that was not set.
  bool derived = false;
  bool argument = false;  // it is an argument of the call in which the program crashed
  bool at_once = false;   // that call comes next, but for copies of it and one branch
};

// Once at a time. At most some 100 ms.
ResultFlow follow_result(InHook, const Question&) noexcept;

}  // namespace oomrec::code_flow
