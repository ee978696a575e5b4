// A call that has returned, by the code before its return address: what it was given, and which
// function it has called. For functions that put their result where an argument points to.
#pragma once

#include <cstdint>

#include "recorder/code_flow/machine.h"

namespace oomrec::code_flow {

// `pc`: the call's return address. `after`: what is known there. `number`: of the argument, from 0.
// Of what is computed before the last branch in front of the call, nothing is known.
Value argument_of_call(std::uint64_t pc, const Machine& after, const FrameBounds&,
                       unsigned number) noexcept;

// The function that a call has called, perhaps through a linkage table; 0: unknown.
std::uint64_t function_called(std::uint64_t pc) noexcept;
// Of a direct call, without the linkage table: its own target.
std::uint64_t target_of_call(std::uint64_t pc) noexcept;

// The instruction at `pc`. False: it is not readable, or not known.
bool read_instruction(std::uint64_t pc, Instruction&) noexcept;

}  // namespace oomrec::code_flow
