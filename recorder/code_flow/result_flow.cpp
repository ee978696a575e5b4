#include "recorder/code_flow/result_flow.h"

#include <algorithm>
#include <cstring>

#include "recorder/code_flow/machine.h"
#include "recorder/code_flow/past_call.h"
#include "recorder/stack/capture.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::code_flow {

using machine_code::kConvention;
using machine_code::OperandKind;
using machine_code::Operation;

namespace {

constexpr unsigned kMostSteps = 8000;   // of one function
constexpr unsigned kMostPlaces = 3000;  // different ones
constexpr unsigned kCheckSteps = 24;    // a check of the result follows the call within so many
constexpr unsigned kMostCopies = 2;     // of the result, by calls through a linkage table
constexpr unsigned kMachines = 40;      // of paths to be followed later, and of places
constexpr unsigned kVisitedLog2 = 12;
constexpr unsigned kVisited = 1U << kVisitedLog2;  // more than kMostPlaces
constexpr std::uint32_t kLevels = 16;              // callers
constexpr std::uint64_t kSomePointer = 0x7e55'5555'5010;
constexpr std::uint64_t kNearBytes = 64 * 1024;  // that a function accesses behind its argument

// To be followed later.
struct Path {
  std::uint64_t pc;
  unsigned forks;  // branches on the way that something unknown decided
  unsigned calls;
  bool decided;  // a branch on the way was decided by the result
};

// A place in the code.
struct Visited {
  std::uint32_t distance;  // from the start
  std::uint16_t state;     // that paths have in common here: its number, from 1; 0: none is kept
  bool used;
  bool decided;  // a branch that something known decided, but not the result
};

// Too large for a stack, and part of the address space of each process: one exploration at a time.
// Paths have the first machines, places the last ones.
struct Workspace {
  Machine machine;  // of the path that is being followed
  Machine machines[kMachines];
  Path paths[kMachines];
  Visited visited[kVisited];
};
constinit Workspace g_workspace{};

// One of the two runs: what is known after all functions that were followed.
struct Run {
  bool failed = false;  // with the result of a failure
  Traces traces;
  bool checked = false;
  bool undecided = false;  // a branch near the call may have checked the result
  bool passed = false;     // an argument of a call, or returned
  bool returned = false;   // by the last function that was followed
  bool reached = false;
  unsigned forks = 0;      // on the way there
  unsigned calls = 0;      // likewise, in that function
  bool passed_on = false;  // a function returned its own value, decided by the result
  bool lost = false;       // how the C library reported the failure to its caller
  bool incomplete = false;
  bool derived = false;
  bool argument = false;
  Value cause;            // the fault's address, or the divisor
  Value values[kLevels];  // that the functions returned
};

// What a function returns after a success is often unknown: another function has made it. It is not
// what the failure makes it return.
Value success_beside(const Value& failed, const Value& value) noexcept {
  if (value.known || !failed.known || !failed.of_result) return value;
  return {failed.bits == 0 ? kSomePointer : 0, true, false, true};
}

// What the address or the divisor is where it faults.
std::uint64_t wrong_of(const Question& question) noexcept {
  return question.divided ? 0 : question.fault_address;
}

// Whether an access at `address`, or less than `near` behind it, makes the fault. The kernel
// reports none that no memory can have.
bool makes_fault(const Question& question, std::uint64_t address, std::uint64_t near) noexcept {
  constexpr unsigned kAddressBits = 48;
  if (question.divided) return false;
  const bool is_possible = address >> kAddressBits == 0;
  return is_possible ? question.fault_address - address < near : question.fault_address == 0;
}

// Whether only a failure makes the fault: what the program chose by the result, without computing
// it from that.
bool is_chosen(const Question& question, const Value& failed, const Value& good) noexcept {
  const std::uint64_t wrong = wrong_of(question);
  return failed.known && good.known && !failed.stale && !good.stale && failed.bits == wrong &&
         good.bits != wrong;
}

// Follows one function from the return address of a call whose result is `value`.
class Exploration {
 public:
  Exploration(const Question& question, std::uint32_t level, Value value, Run& run) noexcept
      : question_(question), run_(run), is_last_(level == question.active) {
    std::memset(g_workspace.visited, 0, sizeof g_workspace.visited);
    const stack::Activation& frame = question.frames[level];
    bounds_ = {question.frames[level + 1].sp, is_last_};
    Path& first = g_workspace.paths[0];
    first.pc = frame.pc;
    first.forks = first.calls = 0;
    first.decided = false;
    Machine& machine = g_workspace.machines[0];
    machine.reset();
    machine.registers[kConvention.result] = value;
    machine.registers[kConvention.stack_pointer] = Value::constant(frame.sp);
    if (is_frame_pointer(frame.bp, frame.sp))
      machine.registers[kConvention.frame_pointer] = Value::constant(frame.bp);
    if (level == 0 && question.stored_by != Question::kNone) follow_stored(machine);
    start_ = frame.pc;
    follows_result_ = value.of_result;
    if (is_last_ && question.aborted) last_call_ = target_of_call(question.at);
    paths_ = 1;
  }

  // False: it never returns, as far as was followed. `value`: what it returns.
  bool run(Value& value) noexcept {
    while (paths_ != 0) {
      Path& path = g_workspace.paths[--paths_];
      pc_ = path.pc;
      forks_ = path.forks;
      calls_ = path.calls;
      decided_ = path.decided;
      machine_ = g_workspace.machines[paths_];
      joins_ = true;
      while (step()) {
      }
    }
    value = returned_value_;
    return returned_;
  }

 private:
  bool is_frame_pointer(std::uint64_t bp, std::uint64_t sp) const noexcept {
    const std::int64_t at = kConvention.frame_pointer_at;
    if (at != 0) return bp == bounds_.end + static_cast<std::uint64_t>(at);
    return bp >= sp && bp < bounds_.end;
  }

  // The pointer that a success stores is otherwise what it was before.
  void follow_stored(Machine& machine) noexcept {
    const Value at =
        argument_of_call(question_.frames[0].pc, machine, bounds_, question_.stored_by);
    const std::uint64_t sp = machine.registers[kConvention.stack_pointer].bits;
    const bool is_own = at.known && at.bits >= sp && at.bits < bounds_.end;
    run_.traces.escaped = run_.traces.escaped || !is_own;
    if (!at.known) return;
    if (!run_.failed) return machine.keep(at.bits, {kSomePointer, true, false, true});
    Value old;
    old.of_result = old.stale = true;
    old.known = (is_last_ || !is_own) && symbols::read_own_memory(OutsideHooks::in_hook(), at.bits,
                                                                  &old.bits, sizeof old.bits);
    machine.keep(at.bits, old);
  }

  Visited& visited_at(std::uint64_t pc) noexcept {
    const auto distance = static_cast<std::uint32_t>(pc - start_);
    for (std::uint32_t at = distance * 0x9e37'79b9U >> (32 - kVisitedLog2);; ++at) {
      Visited& entry = g_workspace.visited[at % kVisited];
      if (!entry.used) entry.distance = distance;
      if (entry.distance == distance) return entry;
    }
  }
  bool has_machine() const noexcept { return paths_ + states_ < kMachines; }

  // Whether the path goes on here: the first one does, and later ones until they know no less than
  // those before. So a loop is followed until what it changes is unknown. `joins_`: another way may
  // have led here.
  bool visit() noexcept {
    visited_ = &visited_at(pc_);
    const bool joins = joins_;
    joins_ = !visited_->used;
    if (joins_) {
      visited_->used = true;
      return ++places_ <= kMostPlaces || give_up();
    }
    // The failed call is made again: another result, which may be the same for another reason.
    if (pc_ == start_) return question_.ambiguous && give_up();
    if (visited_->state == 0) {
      if (!joins) return true;
      if (!has_machine()) return false;
      visited_->state = ++states_;
      g_workspace.machines[kMachines - states_] = machine_;
      return true;
    }
    Machine& state = g_workspace.machines[kMachines - visited_->state];
    const unsigned sp = kConvention.stack_pointer;
    const bool strayed = state.registers[sp].bits != machine_.registers[sp].bits;
    if (strayed || !state.join(machine_)) return false;
    machine_ = state;
    return true;
  }

  bool give_up() noexcept {
    run_.incomplete = true;
    return false;
  }

  // One instruction; false: the path ends.
  bool step() noexcept {
    if (!visit()) return false;
    Instruction instruction;
    if (++steps_ > kMostSteps || !read_instruction(pc_, instruction)) return give_up();
    const std::uint64_t next = pc_ + instruction.length;
    if (is_last_ && question_.exact && pc_ == question_.at) {
      record_fault(instruction, next);
      return false;
    }
    const std::uint64_t target = next + static_cast<std::uint64_t>(instruction.immediate);
    switch (instruction.operation) {
      case Operation::call:
        follow_call(instruction, next, !question_.exact && next == question_.at);
        if (last_call_ != 0 && target == last_call_) return false;
        break;
      case Operation::jump:
        pc_ = target;
        joins_ = true;
        return true;
      case Operation::jump_if:
        return branch(machine_.flags, instruction.condition, target, next);
      case Operation::jump_if_bits:
        return branch(machine_.flags_of_bits(instruction, next, bounds_), instruction.condition,
                      target, next);
      case Operation::jump_indirect:
        if (!is_tail_call(instruction)) return give_up();
        follow_call(instruction, next, leads_to_end(instruction, next));
        [[fallthrough]];
      case Operation::leave_function:
        follow_return();
        return false;
      case Operation::stop:
        return false;
      default:
        machine_.execute(instruction, next, bounds_, run_.traces);
    }
    pc_ = next;
    return true;
  }

  // As the last thing that a function does: the return address is all that is left of its frame.
  bool is_tail_call(const Instruction& instruction) const noexcept {
    const Value& stack_pointer = machine_.registers[kConvention.stack_pointer];
    return instruction.may_leave && stack_pointer.known &&
           stack_pointer.bits == bounds_.end - kConvention.return_address_bytes;
  }

  // Whether the function that is called last is the one in which the program crashed: it has taken
  // the place of the active one.
  bool leads_to_end(const Instruction& instruction, std::uint64_t next) const noexcept {
    constexpr std::uint64_t kMostBytes = 16 * 1024;  // of a function
    const Value address = machine_.address_of(instruction, next);
    std::uint64_t target = 0;
    return is_last_ && instruction.has_memory && address.known &&
           symbols::read_own_memory(OutsideHooks::in_hook(), address.bits, &target,
                                    sizeof target) &&
           // A hook has no frame on the stack: it passes the call on.
           ((question_.in_allocator && stack::is_own_code(target)) ||
            (question_.at >= target && question_.at - target < kMostBytes));
  }

  bool branch(const Flags& flags, std::uint8_t condition, std::uint64_t target,
              std::uint64_t next) noexcept {
    const Holds taken = holds(flags, condition);
    pc_ = taken == Holds::yes ? target : next;
    joins_ = joins_ || taken == Holds::yes;
    if (taken != Holds::unknown) {
      run_.checked = run_.checked || flags.of_result;
      decided_ = decided_ || flags.of_result;
      visited_->decided = visited_->decided || !flags.of_result;
      return true;
    }
    if (follows_result_ && steps_ <= kCheckSteps) run_.undecided = true;
    if (!has_machine()) return give_up();
    if (!visited_->decided) ++forks_;  // else only its loop has made it unknown
    g_workspace.machines[paths_] = machine_;
    Path& other = g_workspace.paths[paths_++];
    other.pc = target;
    other.forks = forks_;
    other.calls = calls_;
    other.decided = decided_;
    return true;
  }

  // `ends`: the program crashed in this call.
  void follow_call(const Instruction& instruction, std::uint64_t next, bool ends) noexcept {
    bool argument = false;
    for (const std::uint8_t number : kConvention.arguments) {
      const Value& value = machine_.registers[number];
      argument = argument || value.is_pointer_of_result();
      // Its callee has used a pointer that was not set.
      if (is_last_ && ends && value.of_result && value.known && value.stale)
        run_.derived = run_.derived || makes_fault(question_, value.bits, kNearBytes);
    }
    run_.passed = run_.passed || argument;
    if (is_last_ && ends) {
      record_reached();
      run_.argument = run_.argument || argument;
      const Value callee = machine_.read(instruction, instruction.from, 8, next, bounds_);
      run_.derived = run_.derived || callee.of_result;
    }
    constexpr unsigned kOwn = kMostCopies + 1;
    calls_ += instruction.from.kind == OperandKind::none ? kOwn : 1;  // memcpy is no direct one
    machine_.return_from_call();
  }

  void record_reached() noexcept {
    run_.forks = run_.reached ? std::min(run_.forks, forks_) : forks_;
    run_.calls = run_.reached ? std::min(run_.calls, calls_) : calls_;
    run_.reached = true;
  }

  void record_fault(const Instruction& instruction, std::uint64_t next) noexcept {
    record_reached();
    Value& cause = run_.cause;
    if (question_.divided)
      cause = machine_.read(instruction, instruction.left, instruction.bytes, next, bounds_);
    else if (instruction.has_memory)
      cause = machine_.address_of(instruction, next);
    const bool is_wrong = !cause.known || cause.bits == wrong_of(question_) ||
                          (cause.stale && makes_fault(question_, cause.bits, 1));
    run_.derived = run_.derived || (cause.of_result && is_wrong);
  }

  void follow_return() noexcept {
    Value value = machine_.registers[kConvention.result];
    value.narrow = false;  // its type is not known here
    // A constant of this path tells the caller how the call has ended.
    if (decided_ && !value.of_result && value.known && !value.stale)
      value.of_result = run_.passed_on = true;
    if (!returned_) {
      returned_value_ = value;
    } else {
      const bool same = value.known && value.bits == returned_value_.bits;
      returned_value_.known = returned_value_.known && same;
      returned_value_.of_result = returned_value_.of_result || value.of_result;
    }
    returned_ = true;
    run_.passed = run_.passed || value.of_result;
  }

  const Question& question_;
  Run& run_;
  const bool is_last_;
  FrameBounds bounds_;
  bool follows_result_ = false;
  std::uint64_t start_ = 0;
  std::uint64_t last_call_ = 0;  // the function that never returned; 0: unknown
  Machine& machine_ = g_workspace.machine;
  std::uint64_t pc_ = 0;
  unsigned paths_ = 0;
  unsigned forks_ = 0;
  unsigned calls_ = 0;
  bool decided_ = false;
  bool joins_ = true;
  Visited* visited_ = nullptr;  // of the present instruction
  std::uint16_t states_ = 0;
  unsigned steps_ = 0, places_ = 0;
  bool returned_ = false;
  Value returned_value_;
};

// `failed`: the run whose result was that of a failure; null: this one is.
Run follow(const Question& question, std::uint64_t result, const Run* failed) noexcept {
  Run run;
  run.failed = failed == nullptr;
  Value value{result, true, false, true};
  const auto last = static_cast<std::uint32_t>(
      std::min<std::size_t>({question.active, question.frames.size() - 2, kLevels - 1}));
  for (std::uint32_t level = 0; level <= last; ++level) {
    // No function is left to look for the crash in.
    if (level != 0 && last != question.active && !value.of_result) break;
    if (!Exploration{question, level, value, run}.run(value) && level != last) {
      run.incomplete = true;
      break;
    }
    if (failed != nullptr) value = success_beside(failed->values[level], value);
    run.values[level] = value;
    if (level + 1 == question.library_frames) run.lost = !value.of_result;
  }
  run.checked = run.checked || run.traces.selected;
  // An error code is no pointer that others may use later.
  run.returned = last != question.active && value.of_result && !run.passed_on;
  return run;
}

// Whether the active function makes the call in which the program crashed right after the one that
// led to the failure, whatever that returned: with one branch in between at most.
bool is_next_call(const Question& question) noexcept {
  if (question.active + 1 >= question.frames.size()) return false;
  Run run;
  Value value{};
  Exploration{question, question.active, value, run}.run(value);
  return run.reached && run.forks <= 1 && run.calls <= kMostCopies;
}

}  // namespace

ResultFlow follow_result(InHook, const Question& question) noexcept {
  ResultFlow flow;
  if (question.frames.size() < 2) return flow;
  const Run failed = follow(question, question.failed_result, nullptr);
  const Run good = follow(question, question.good_result, &failed);
  flow.checked = failed.checked;
  flow.kept = failed.traces.escaped || failed.returned;
  flow.lost = failed.lost;
  flow.derived = failed.derived || is_chosen(question, failed.cause, good.cause);
  flow.argument = failed.argument;
  flow.at_once = is_next_call(question);
  flow.unchecked = !failed.checked && !failed.undecided && (failed.passed || failed.traces.escaped);
  // Through memory a function may tell its caller about the failure: that is not followed.
  const bool comparable = question.active == 0 || !failed.traces.wrote_outside;
  // A success may seem to lead there only because a call that never returns was followed further,
  // into code that belongs to another path. Then it takes more unknown turns than the failure.
  const bool good_strays = failed.forks == 0 && good.forks != 0;
  const bool only_failed = good.reached ? good_strays : !good.incomplete;
  flow.only_on_failure = failed.checked && failed.reached && only_failed;
  flow.regardless = failed.reached && good.reached && comparable && good.forks <= failed.forks;
  return flow;
}

}  // namespace oomrec::code_flow
