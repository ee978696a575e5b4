#include "tools/processes/attach/machine_code.h"

#include <cpuid.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <map>

namespace oomrec::tools::processes {
namespace {

// As instructions encode them.
enum Register : std::uint8_t {
  rax,
  rcx,
  rdx,
  rbx,
  rsp,
  rbp,
  rsi,
  rdi,
  r8,
  r9,
  r10,
  r11,
  r12,
  r13,
  r14,
  r15
};
constexpr std::size_t kRegisters = 16;

constexpr std::uint32_t kStateOffset = 4096;        // in the mapping: the floating-point state
constexpr std::uint64_t kWaitCycles = 150'000'000;  // of the time stamp counter: some 50 ms
constexpr std::uint32_t kDefaultMxcsr = 0x1f80;

enum class Label : std::uint8_t {
  call,
  open_failed,
  after,
  wait_for_reader,
  unmap,
  begin_last_wait,
  last_wait
};

// A constant behind the code.
enum class Word : std::uint8_t {
  registers,
  rip = kRegisters,
  flags,
  mask,
  mxcsr,
  all_signals,
  count
};

class Assembler {
 public:
  void raw(std::initializer_list<int> bytes) {
    for (const int byte : bytes) bytes_.push_back(static_cast<std::uint8_t>(byte));
  }
  void number(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) raw({static_cast<int>(value >> (8 * i) & 0xff)});
  }

  void set(Register to, std::uint64_t value) {  // mov to, imm64
    raw({0x48 | to >> 3, 0xb8 | (to & 7)});
    number(value, 8);
  }
  void system_call(long number_of_call) {
    set(rax, static_cast<std::uint64_t>(number_of_call));
    raw({0x0f, 0x05});
  }
  void call(std::uint64_t function) {
    set(rax, function);
    call_rax();
  }
  void call_rax() { raw({0xff, 0xd0}); }
  void store(std::size_t offset, Register from) {  // mov [rbx + offset], from
    raw({0x48 | from >> 3 << 2, 0x89, 0x43 | (from & 7) << 3, static_cast<int>(offset)});
  }
  void set_state(Mailbox::State state) {  // mov qword [rbx], state
    raw({0x48, 0xc7, 0x03});
    number(state, 4);
  }
  void load(Register to, Word word) {  // mov to, [rip + …]
    raw({0x48 | to >> 3 << 2, 0x8b, 0x05 | (to & 7) << 3});
    refer(word);
  }
  // An instruction ends with the distance to a constant.
  void refer(Word word) {
    words_to_fix_.push_back({bytes_.size(), word});
    number(0, 4);
  }
  void place(Label label) { labels_[label] = bytes_.size(); }
  std::uint64_t size() const { return bytes_.size(); }
  std::uint64_t place_of(Label label) const { return labels_.at(label); }
  void jump(std::initializer_list<int> instruction, Label label) {
    raw(instruction);
    jumps_to_fix_.push_back({bytes_.size(), label});
    number(0, 4);
  }

  std::vector<std::uint8_t> finish(std::span<const std::uint64_t> words) {
    while (bytes_.size() % 8 != 0) raw({0xcc});
    const std::size_t constants = bytes_.size();
    for (const auto& [place, word] : words_to_fix_)
      fix(place, constants + static_cast<std::size_t>(word) * 8);
    for (const auto& [place, label] : jumps_to_fix_) fix(place, labels_.at(label));
    for (const std::uint64_t word : words) number(word, 8);
    return std::move(bytes_);
  }

 private:
  void fix(std::size_t place, std::size_t target) {
    const auto distance = static_cast<std::int32_t>(target - (place + 4));
    std::memcpy(bytes_.data() + place, &distance, 4);
  }

  std::vector<std::uint8_t> bytes_;
  std::map<Label, std::size_t> labels_;
  std::vector<std::pair<std::size_t, Word>> words_to_fix_;
  std::vector<std::pair<std::size_t, Label>> jumps_to_fix_;
};

bool has_xsave() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_OSXSAVE) != 0;
}

// All parts of the floating-point state, to or from the mapping.
void save_or_restore_state(Assembler& code, bool save) {
  code.set(rax, 0xffffffff);
  code.set(rdx, 0xffffffff);
  if (has_xsave())
    code.raw({0x48, 0x0f, 0xae, save ? 0xa3 : 0xab});  // xsave64, xrstor64
  else
    code.raw({0x48, 0x0f, 0xae, save ? 0x83 : 0x8b});  // fxsave64, fxrstor64
  code.number(kStateOffset, 4);
}

void set_signal_mask(Assembler& code, Word mask) {
  code.set(rdi, SIG_SETMASK);
  code.raw({0x48, 0x8d, 0x35});  // lea rsi, [rip + …]
  code.refer(mask);
  code.set(rdx, 0);
  code.set(r10, sizeof(std::uint64_t));
  code.system_call(SYS_rt_sigprocmask);
}

void map_scratch(Assembler& code, std::uint64_t scratch) {
  code.set(rdi, scratch);
  code.set(rsi, kScratchBytes);
  code.set(rdx, PROT_READ | PROT_WRITE);
  code.set(r10, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
  code.set(r8, ~std::uint64_t{0});
  code.set(r9, 0);
  code.system_call(SYS_mmap);
  code.set(rbx, scratch);
  code.raw({0x48, 0x39, 0xd8});  // cmp rax, rbx
  code.jump({0x0f, 0x85}, Label::begin_last_wait);
  code.set(rsp, scratch + kScratchBytes - 128);
}

void call_function(Assembler& code, const RemoteCall& call) {
  code.set(rbp, 0);  // the outermost frame
  code.call(call.errno_location);
  code.raw({0x49, 0x89, 0xc4});        // mov r12, rax
  code.raw({0x45, 0x8b, 0x2c, 0x24});  // mov r13d, [r12]
  if (call.open != 0) {
    constexpr std::uint64_t kNow = 2;  // RTLD_NOW
    code.set(rdi, call.library_path);
    code.set(rsi, kNow);
    code.call(call.open);
    code.store(offsetof(Mailbox, library), rax);
    code.raw({0x48, 0x85, 0xc0});  // test rax, rax
    code.jump({0x0f, 0x84}, Label::open_failed);
    code.raw({0x48, 0x8b, 0x00});  // mov rax, [rax]: link_map::l_addr
    code.set(r14, call.function);
    code.raw({0x4c, 0x01, 0xf0});  // add rax, r14
  } else {
    code.set(rax, call.function);
  }
  code.set(rdi, call.argument);
  code.call_rax();
  code.store(offsetof(Mailbox, result), rax);
  code.jump({0xe9}, Label::after);
  code.place(Label::open_failed);
  code.call(call.open_error);
  code.store(offsetof(Mailbox, error), rax);
  code.place(Label::after);
  code.raw({0x45, 0x89, 0x2c, 0x24});  // mov [r12], r13d
}

void read_time(Assembler& code) {
  code.raw({0x0f, 0x31});              // rdtsc
  code.raw({0x48, 0xc1, 0xe2, 0x20});  // shl rdx, 32
  code.raw({0x48, 0x09, 0xd0});        // or rax, rdx
}

// Repeats sched_yield until the time is over. Unlike a sleep it leaves the thread's restart block
// alone, which a system call that was interrupted needs.
void wait_for_command(Assembler& code, Label label, bool reads_mailbox) {
  read_time(code);
  code.set(r14, kWaitCycles);
  code.raw({0x49, 0x01, 0xc6});  // add r14, rax
  code.place(label);
  code.system_call(SYS_sched_yield);
  if (reads_mailbox) {
    code.raw({0x48, 0x83, 0x3b, Mailbox::read_by_command});  // cmp qword [rbx], …
    code.jump({0x0f, 0x84}, Label::unmap);
  }
  read_time(code);
  code.raw({0x4c, 0x39, 0xf0});  // cmp rax, r14
  code.jump({0x0f, 0x82}, label);
}

void restore_thread(Assembler& code, const user_regs_struct& after) {
  constexpr std::uint64_t kRedZoneBytes = 128;
  set_signal_mask(code, Word::mask);
  code.set(rsp, after.rsp - kRedZoneBytes - 16);
  code.raw({0xff, 0x35});  // push qword [rip + …]
  code.refer(Word::flags);
  code.raw({0x9d});  // popfq
  for (std::size_t i = 0; i < kRegisters; ++i)
    code.load(static_cast<Register>(i), static_cast<Word>(i));
  code.raw({0xff, 0x25});  // jmp [rip + …]
  code.refer(Word::rip);
}

}  // namespace

MachineCode code_of(const RemoteCall& call, std::uint64_t scratch, const user_regs_struct& after,
                    std::uint64_t mask) {
  Assembler code;
  code.number(CodeHeader::kMagic, 8);
  code.number(scratch, 8);
  static_assert(sizeof(CodeHeader) == 16);
  // The command does so, too, unless it is killed before. Until here, a handler runs as if it had
  // interrupted the program; inside of malloc it must not.
  set_signal_mask(code, Word::all_signals);
  map_scratch(code, scratch);
  code.set_state(Mailbox::at_work);
  save_or_restore_state(code, true);
  code.raw({0xdb, 0xe3, 0xfc, 0x0f, 0xae, 0x15});  // fninit; cld; ldmxcsr [rip + …]
  code.refer(Word::mxcsr);
  call_function(code, call);
  save_or_restore_state(code, false);
  code.set_state(Mailbox::done);
  wait_for_command(code, Label::wait_for_reader, true);
  code.place(Label::unmap);
  code.set(rdi, scratch);
  code.set(rsi, kScratchBytes);
  code.system_call(SYS_munmap);
  code.place(Label::begin_last_wait);
  // The command gives the signals back before the registers, and may be killed in between: their
  // handlers then run on the program's stack.
  code.load(rsp, static_cast<Word>(rsp));
  wait_for_command(code, Label::last_wait, false);
  const std::uint64_t last_wait_end = code.size();
  restore_thread(code, after);

  const std::uint64_t words[] = {
      after.rax, after.rcx, after.rdx, after.rbx,    after.rsp, after.rbp,     after.rsi,
      after.rdi, after.r8,  after.r9,  after.r10,    after.r11, after.r12,     after.r13,
      after.r14, after.r15, after.rip, after.eflags, mask,      kDefaultMxcsr, ~std::uint64_t{0}};
  static_assert(std::size(words) == static_cast<std::size_t>(Word::count));
  MachineCode made;
  made.last_wait = code.place_of(Label::last_wait);
  made.last_wait_end = last_wait_end;
  made.bytes = code.finish(words);
  return made;
}

}  // namespace oomrec::tools::processes
