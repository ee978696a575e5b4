#include "tools/processes/attach/machine_code.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstddef>

#include "common/machine/code_writer.h"

namespace oomrec::tools::processes {
namespace {

using machine::CodeWriter;

constexpr std::uint32_t kVectorsOffset = 4096;  // in the mapping: the floating-point state

// NOLINTNEXTLINE(*-use-enum-class): labels of a CodeWriter are numbers
enum Label : int { open_failed, after_call, wait_for_reader, unmap, begin_last_wait, last_wait };

void set_signal_mask(CodeWriter& code, std::uint64_t mask) {
  code.system_call(SYS_rt_sigprocmask,
                   {{SIG_SETMASK}, machine::address_of(mask), {0}, {sizeof mask}});
}

void map_scratch(CodeWriter& code, std::uint64_t scratch) {
  code.system_call(SYS_mmap, {{scratch},
                              {kScratchBytes},
                              {PROT_READ | PROT_WRITE},
                              {MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE},
                              {~std::uint64_t{0}},
                              {0}});
  code.set_mailbox(scratch);
  code.jump_unless_mapped(Label::begin_last_wait);
  code.set_stack(scratch + kScratchBytes - 128);
}

void call_function(CodeWriter& code, const RemoteCall& call) {
  code.end_stack();
  code.call(call.errno_location, {});
  code.keep_errno();
  if (call.open != 0) {
    constexpr std::uint64_t kNow = 2;  // RTLD_NOW
    code.call(call.open, {call.library_path, kNow});
    code.store_result(offsetof(Mailbox, library));
    code.jump_if_null(Label::open_failed);
    code.call_in_module(call.function, call.argument);
  } else {
    code.call(call.function, {call.argument});
  }
  code.store_result(offsetof(Mailbox, result));
  code.jump(Label::after_call);
  code.place(Label::open_failed);
  code.call(call.open_error, {});
  code.store_result(offsetof(Mailbox, error));
  code.place(Label::after_call);
  code.restore_errno();
}

// Repeats sched_yield until the time is over. Unlike a sleep it leaves the thread's restart block
// alone, which a system call that was interrupted needs.
void wait_for_command(CodeWriter& code, Label label, bool reads_mailbox) {
  code.start_wait();
  code.place(label);
  code.system_call(SYS_sched_yield, {});
  if (reads_mailbox) code.jump_if_state(Mailbox::read_by_command, Label::unmap);
  code.jump_while_waiting(label);
}

}  // namespace

MachineCode code_of(const RemoteCall& call, std::uint64_t scratch,
                    const machine::ThreadRegisters& after, std::uint64_t mask,
                    std::uint64_t way_back) {
  CodeWriter code;
  code.number(CodeHeader::kMagic, 8);
  code.number(scratch, 8);
  static_assert(sizeof(CodeHeader) == 16);
  // The command does so, too, unless it is killed before. Until here, a handler runs as if it had
  // interrupted the program; inside of malloc it must not.
  set_signal_mask(code, ~std::uint64_t{0});
  map_scratch(code, scratch);
  code.store_state(Mailbox::at_work);
  code.save_vectors(kVectorsOffset);
  call_function(code, call);
  code.restore_vectors(kVectorsOffset);
  code.store_state(Mailbox::done);
  wait_for_command(code, Label::wait_for_reader, true);
  code.place(Label::unmap);
  code.system_call(SYS_munmap, {{scratch}, {kScratchBytes}});
  code.place(Label::begin_last_wait);
  // The command gives the signals back before the registers, and may be killed in between: their
  // handlers then run on the program's stack.
  code.set_stack(after.sp());
  wait_for_command(code, Label::last_wait, false);
  const std::uint64_t last_wait_end = code.size();
  set_signal_mask(code, mask);
  code.leave(after, way_back);

  MachineCode made;
  made.last_wait = code.place_of(Label::last_wait);
  made.last_wait_end = last_wait_end;
  made.bytes = code.finish();
  return made;
}

}  // namespace oomrec::tools::processes
