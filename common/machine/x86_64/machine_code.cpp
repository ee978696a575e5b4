// Intel's manual, volume 2, appendix A: opcode maps. Prefixes, opcode, ModRM, SIB, displacement,
// immediate.
#include "common/machine/machine_code.h"

#include <initializer_list>

namespace oomrec::machine_code {
namespace {

constexpr std::uint8_t kRax = 0, kRcx = 1, kRdx = 2, kRsp = 4, kRbp = 5, kRsi = 6, kRdi = 7;
constexpr std::uint8_t kArguments[] = {kRdi, kRsi, kRdx, kRcx};

constexpr std::uint64_t bits_of(std::initializer_list<unsigned> registers) noexcept {
  std::uint64_t bits = 0;
  for (const unsigned number : registers) bits |= std::uint64_t{1} << number;
  return bits;
}

// The last map of opcodes that was escaped to.
enum class Map : std::uint8_t { one_byte, two_bytes, three_bytes_38, three_bytes_3a };

constexpr Operation kArithmetic[] = {Operation::add,     Operation::bit_or,  Operation::other,
                                     Operation::other,   Operation::bit_and, Operation::subtract,
                                     Operation::bit_xor, Operation::compare};

class Decoder {
 public:
  Decoder(std::span<const std::uint8_t> code, Instruction& out) noexcept : code_(code), out_(out) {}

  bool run() noexcept {
    read_prefixes();
    const std::uint8_t opcode = next();
    bool known = false;
    if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62) {
      known = read_vector(opcode);
    } else if (opcode == 0x0f) {
      known = read_escaped(next());
    } else {
      known = read_one_byte(opcode);
    }
    out_.length = static_cast<std::uint8_t>(at_);
    if (out_.bytes == 1 && rex_ == 0) give_up_high_bytes();
    return known && !cut_ && at_ <= kLongestInstruction;
  }

 private:
  std::uint8_t next() noexcept {
    if (at_ >= code_.size()) {
      cut_ = true;
      return 0;
    }
    return code_[at_++];
  }

  std::int64_t number(unsigned bytes) noexcept {  // signed, little-endian
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(next()) << (8 * i);
    const unsigned unused = 64 - 8 * bytes;
    return static_cast<std::int64_t>(value << unused) >> unused;
  }

  void read_prefixes() noexcept {
    for (; at_ < code_.size(); ++at_) {
      const std::uint8_t byte = code_[at_];
      if (byte == 0x66) {
        operand_16_ = true;
      } else if (byte == 0xf2 || byte == 0xf3) {
        repeat_ = byte;
      } else if (byte == 0x64 || byte == 0x65) {
        out_.memory.other_segment = true;
      } else if (byte != 0x2e && byte != 0x36 && byte != 0x3e && byte != 0x26 && byte != 0xf0) {
        break;
      }
    }
    if (at_ < code_.size() && (code_[at_] & 0xf0) == 0x40) rex_ = code_[at_++];
    if ((rex_ & 8) != 0) {
      out_.bytes = 8;
    } else if (operand_16_) {
      out_.bytes = 2;
    }
  }

  Operand register_operand(unsigned number) const noexcept {
    return {OperandKind::reg, static_cast<std::uint8_t>(number)};
  }

  // ModRM, SIB and displacement: sets reg_, rm_, and the memory operand.
  void read_modrm() noexcept {
    const std::uint8_t modrm = next();
    const unsigned mode = modrm >> 6;
    extension_ = (modrm >> 3) & 7;
    reg_ = static_cast<std::uint8_t>(extension_ | ((rex_ & 4U) << 1));
    const auto low = static_cast<std::uint8_t>(modrm & 7);
    const auto base_bit = static_cast<std::uint8_t>((rex_ & 1) << 3);
    if (mode == 3) {
      rm_ = register_operand(low | base_bit);
      return;
    }
    out_.has_memory = true;
    rm_ = {OperandKind::memory, kNoRegister};
    Memory& memory = out_.memory;
    bool wide = mode == 2;
    if (low == 4) {
      const std::uint8_t sib = next();
      const auto index = static_cast<std::uint8_t>(((sib >> 3) & 7) | ((rex_ & 2) << 2));
      if (index != 4) memory.index = index;
      memory.index_extension.shift = sib >> 6;
      if ((sib & 7) == 5 && mode == 0) {
        wide = true;
      } else {
        memory.base = static_cast<std::uint8_t>((sib & 7) | base_bit);
      }
    } else if (low == 5 && mode == 0) {
      memory.base = kNextInstruction;
      wide = true;
    } else {
      memory.base = low | base_bit;
    }
    memory.displacement = wide ? number(4) : mode == 1 ? number(1) : 0;
  }

  // Without REX, numbers 4 to 7 of one byte are ah to bh: parts of registers, not followed.
  void give_up_high_bytes() noexcept {
    const auto is_high = [](Operand operand) {
      return operand.kind == OperandKind::reg && operand.reg >= 4 && operand.reg < 8;
    };
    if (!is_high(out_.to) && !is_high(out_.from)) return;
    out_.operation = Operation::other;
    out_.changes_flags = true;
    if (is_high(out_.to)) out_.to.reg -= 4;
  }

  void operands(Operand to, Operand from) noexcept {
    out_.to = out_.left = to;
    out_.from = from;
  }
  Operand reg() const noexcept { return register_operand(reg_); }
  static constexpr Operand immediate() noexcept { return {OperandKind::immediate, kNoRegister}; }
  unsigned immediate_bytes() const noexcept {  // at most four, whatever the operands have
    return out_.bytes == 8 ? 4 : out_.bytes;
  }

  bool read_one_byte(std::uint8_t opcode) noexcept {
    if (opcode < 0x40) return read_arithmetic(opcode);
    const auto low = static_cast<unsigned>((opcode & 7) | ((rex_ & 1) << 3));
    if (opcode >= 0x50 && opcode < 0x60) {
      out_.bytes = 8;
      out_.operation = opcode < 0x58 ? Operation::push : Operation::pop;
      (opcode < 0x58 ? out_.from : out_.to) = register_operand(low);
      return true;
    }
    if (opcode >= 0x70 && opcode < 0x80) return branch(Operation::jump_if, opcode, 1);
    if (opcode >= 0x80 && opcode < 0x84) return read_arithmetic_immediate(opcode);
    if (opcode >= 0x84 && opcode < 0x8c) return read_move(opcode);
    if (opcode == 0x90) return true;
    if (opcode > 0x90 && opcode < 0x98) {  // xchg with rax
      out_.operation = Operation::other_wide;
      out_.to = register_operand(low);
      return true;
    }
    if (opcode >= 0xb0 && opcode < 0xc0) {
      if (opcode < 0xb8) out_.bytes = 1;
      out_.operation = Operation::move;
      operands(register_operand(low), immediate());
      out_.immediate = number(out_.bytes);
      if (out_.bytes == 4) out_.immediate &= 0xffff'ffff;
      return true;
    }
    if (opcode >= 0xd8 && opcode < 0xe0) {  // x87: overwrites at most ax
      read_modrm();
      out_.changes_flags = true;
      return true;
    }
    return read_rest(opcode);
  }

  bool read_rest(std::uint8_t opcode) noexcept {
    switch (opcode) {
      case 0x63:
        read_modrm();
        out_.operation = Operation::move_signed;
        operands(reg(), rm_);
        return true;
      case 0x68:
      case 0x6a:
        out_.operation = Operation::push;
        out_.from = immediate();
        out_.immediate = number(opcode == 0x68 ? 4 : 1);
        out_.bytes = 8;
        return true;
      case 0x69:
      case 0x6b:
        read_modrm();
        out_.immediate = number(opcode == 0x6b ? 1 : immediate_bytes());
        return overwrites(reg());
      case 0x8d:
        read_modrm();
        out_.operation = Operation::load_address;
        operands(reg(), rm_);
        out_.has_memory = false;  // it is not accessed
        return true;
      case 0x98:  // cdqe, cwde
        out_.operation = Operation::move_signed;
        out_.from_bytes = out_.bytes / 2;
        operands({OperandKind::reg, kRax}, {OperandKind::reg, kRax});
        return true;
      case 0x99:  // cqo
        return overwrites({OperandKind::reg, kRdx}, false);
      case 0xa4:
      case 0xa5:
      case 0xaa:
      case 0xab:  // movs, stos
      case 0xa6:
      case 0xa7:
      case 0xae:
      case 0xaf:  // cmps, scas
        out_.operation = Operation::other_wide;
        out_.changes_flags = true;
        return true;
      case 0xa8:
      case 0xa9:
        if (opcode == 0xa8) out_.bytes = 1;
        return compare_with_rax(Operation::test);
      case 0xc0:
      case 0xc1:
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:  // shifts
        if ((opcode & 1) == 0) out_.bytes = 1;
        read_modrm();
        if (opcode < 0xd0) number(1);
        if (extension_ < 4) return overwrites(rm_);  // rotations
        out_.operation = Operation::shift;
        out_.to = out_.left = rm_;
        out_.changes_flags = true;
        return true;
      case 0xc2:
        number(2);
        [[fallthrough]];
      case 0xc3:
        out_.operation = Operation::leave_function;
        return true;
      case 0xc6:
      case 0xc7:
        if (opcode == 0xc6) out_.bytes = 1;
        read_modrm();
        out_.operation = Operation::move;
        operands(rm_, immediate());
        out_.immediate = number(immediate_bytes());
        return true;
      case 0xc9:
        out_.operation = Operation::leave;
        return true;
      case 0xcc:
      case 0xf4:
        out_.operation = Operation::stop;
        return true;
      case 0xe8:
        return branch(Operation::call, 0, 4);
      case 0xe9:
        return branch(Operation::jump, 0, 4);
      case 0xeb:
        return branch(Operation::jump, 0, 1);
      case 0xf6:
      case 0xf7:
        return read_group_3(opcode);
      case 0xf8:
      case 0xf9:
      case 0xfa:
      case 0xfb:
      case 0xfc:
      case 0xfd:
      case 0xf5:
      case 0x9b:
        out_.changes_flags = true;
        return true;
      case 0xfe:
      case 0xff:
        return read_group_5(opcode);
      default:
        return false;
    }
  }

  bool branch(Operation operation, std::uint8_t opcode, unsigned bytes) noexcept {
    out_.operation = operation;
    out_.condition = opcode & 15;
    out_.immediate = number(bytes);
    return true;
  }

  bool overwrites(Operand to, bool flags = true) noexcept {
    out_.operation = Operation::other;
    out_.to = to;
    out_.changes_flags = flags;
    return true;
  }

  bool compare_with_rax(Operation operation) noexcept {
    out_.operation = operation;
    out_.changes_flags = true;
    operands({OperandKind::reg, kRax}, immediate());
    out_.immediate = number(immediate_bytes());
    return true;
  }

  bool read_arithmetic(std::uint8_t opcode) noexcept {
    const unsigned form = opcode & 7;
    if (form > 5) return false;
    if ((form & 1) == 0) out_.bytes = 1;
    const Operation operation = kArithmetic[opcode >> 3];
    if (form >= 4) {
      compare_with_rax(operation);
    } else {
      read_modrm();
      form < 2 ? operands(rm_, reg()) : operands(reg(), rm_);
      out_.operation = operation;
    }
    out_.changes_flags = true;
    return true;
  }

  bool read_arithmetic_immediate(std::uint8_t opcode) noexcept {
    if (opcode == 0x80) out_.bytes = 1;
    read_modrm();
    out_.operation = kArithmetic[extension_];
    operands(rm_, immediate());
    out_.immediate = number(opcode == 0x81 ? immediate_bytes() : 1);
    out_.changes_flags = true;
    return true;
  }

  bool read_move(std::uint8_t opcode) noexcept {
    if ((opcode & 1) == 0) out_.bytes = 1;
    read_modrm();
    if (opcode < 0x86) {
      out_.operation = Operation::test;
      out_.changes_flags = true;
      operands(rm_, reg());
    } else if (opcode < 0x88) {  // xchg
      out_.operation = Operation::exchange;
      operands(rm_, reg());
    } else {
      out_.operation = Operation::move;
      opcode < 0x8a ? operands(rm_, reg()) : operands(reg(), rm_);
    }
    return true;
  }

  bool read_group_3(std::uint8_t opcode) noexcept {
    if (opcode == 0xf6) out_.bytes = 1;
    read_modrm();
    if (extension_ < 2) {
      out_.operation = Operation::test;
      out_.changes_flags = true;
      operands(rm_, immediate());
      out_.immediate = number(immediate_bytes());
      return true;
    }
    if (extension_ < 4) return overwrites(rm_);  // not, neg
    if (extension_ >= 6) out_.left = rm_;        // div, idiv
    out_.operation = Operation::other_wide;
    out_.changes_flags = true;
    return true;
  }

  bool read_group_5(std::uint8_t opcode) noexcept {
    if (opcode == 0xfe) out_.bytes = 1;
    read_modrm();
    switch (extension_) {
      case 0:
      case 1:  // inc, dec
        out_.operation = extension_ == 0 ? Operation::add : Operation::subtract;
        operands(rm_, immediate());
        out_.immediate = 1;
        out_.changes_flags = true;
        return true;
      case 2:
        out_.operation = Operation::call;
        out_.from = rm_;
        return true;
      case 4:
        out_.operation = Operation::jump_indirect;
        out_.from = rm_;
        // Through a linkage table's entry. A switch reads its table by an index.
        out_.may_leave = out_.memory.base == kNextInstruction && !out_.memory.other_segment;
        return true;
      case 6:
        out_.operation = Operation::push;
        out_.from = rm_;
        out_.bytes = 8;
        return true;
      default:
        return false;
    }
  }

  // 0f …
  bool read_escaped(std::uint8_t opcode) noexcept {
    if (opcode == 0x38) return next(), read_vector_operands(Map::three_bytes_38, 0);
    if (opcode == 0x3a) return next(), read_vector_operands(Map::three_bytes_3a, 0);
    if (opcode == 0x0b) {
      out_.operation = Operation::stop;
      return true;
    }
    if (opcode == 0x05 || opcode == 0x31 || opcode == 0xa2) {  // syscall, rdtsc, cpuid
      out_.operation = Operation::other_wide;
      return true;
    }
    if (opcode >= 0x80 && opcode < 0x90) return branch(Operation::jump_if, opcode, 4);
    if (opcode >= 0xc8 && opcode < 0xd0)
      return overwrites(register_operand(static_cast<unsigned>((opcode & 7) | ((rex_ & 1) << 3))));
    if (opcode >= 0x40 && opcode < 0x50) {
      read_modrm();
      out_.operation = Operation::move_if;
      out_.condition = opcode & 15;
      operands(reg(), rm_);
      return true;
    }
    if (opcode >= 0x90 && opcode < 0xa0) {
      out_.bytes = 1;
      read_modrm();
      out_.operation = Operation::set_if;
      out_.condition = opcode & 15;
      out_.to = rm_;
      return true;
    }
    switch (opcode) {
      case 0xb6:
      case 0xb7:
      case 0xbe:
      case 0xbf:
        read_modrm();
        out_.operation = opcode < 0xb8 ? Operation::move_zero : Operation::move_signed;
        out_.from_bytes = (opcode & 1) == 0 ? 1 : 2;
        operands(reg(), rm_);
        return true;
      case 0xa3:  // bt
        read_modrm();
        return overwrites({});
      case 0xba:
        read_modrm();
        number(1);
        return overwrites(extension_ == 4 ? Operand{} : rm_);
      case 0xa4:
      case 0xac:
        read_modrm();
        number(1);
        return overwrites(rm_);
      case 0xa5:
      case 0xab:
      case 0xad:
      case 0xb3:
      case 0xbb:
        read_modrm();
        return overwrites(rm_);
      case 0xaf:
      case 0xbc:
      case 0xbd:
      case 0xb8:
        read_modrm();
        return overwrites(reg());
      case 0xb0:
      case 0xb1:
      case 0xc0:
      case 0xc1:
      case 0xc7:  // cmpxchg, xadd
        read_modrm();
        out_.operation = Operation::other_wide;
        out_.changes_flags = true;
        operands(rm_, reg());
        return true;
      default:
        return read_vector_operands(Map::two_bytes, opcode);
    }
  }

  // Vector instructions: xmm registers are not followed, but some results go to a general register.
  bool read_vector_operands(Map map, std::uint8_t opcode) noexcept {
    if (map == Map::two_bytes && opcode == 0x77) return true;  // emms, vzeroupper
    read_modrm();
    const bool with_immediate =
        map == Map::three_bytes_3a ||
        (map == Map::two_bytes && ((opcode >= 0x70 && opcode < 0x74) || opcode == 0xc2 ||
                                   (opcode >= 0xc4 && opcode < 0xc7)));
    if (with_immediate) number(1);
    out_.operation = Operation::other;
    if (map != Map::two_bytes) {
      out_.changes_flags = true;
      out_.to = rm_.kind == OperandKind::reg ? reg() : Operand{};
      return true;
    }
    if (opcode == 0x2c || opcode == 0x2d || opcode == 0x50 || opcode == 0xc5 || opcode == 0xd7) {
      out_.to = reg();
    } else if (opcode == 0x7e && repeat_ != 0xf3) {
      out_.to = rm_;
    }
    out_.changes_flags = opcode == 0x2e || opcode == 0x2f;
    return true;
  }

  bool read_vector(std::uint8_t first) noexcept {
    const std::uint8_t second = next();
    auto map = Map::two_bytes;
    rex_ = static_cast<std::uint8_t>((~second >> 5) & 4);
    if (first != 0xc5) {
      const unsigned selected = second & (first == 0xc4 ? 31 : 7);
      if (selected == 0 || selected > 3) return false;
      map = static_cast<Map>(selected);
      rex_ = static_cast<std::uint8_t>((~second >> 5) & 7);
      next();
      if (first == 0x62) next();
    }
    const std::uint8_t opcode = next();
    if (!read_vector_operands(map, opcode)) return false;
    if (first == 0x62) out_.has_memory = false;  // its displacement may be scaled
    return true;
  }

  const std::span<const std::uint8_t> code_;
  Instruction& out_;
  std::size_t at_ = 0;
  bool cut_ = false;
  bool operand_16_ = false;
  std::uint8_t repeat_ = 0;
  std::uint8_t rex_ = 0;
  std::uint8_t reg_ = 0;
  unsigned extension_ = 0;
  Operand rm_;
};

}  // namespace

bool decode(std::span<const std::uint8_t> code, Instruction& instruction) noexcept {
  instruction = {};
  return Decoder{code, instruction}.run();
}

constinit const CallingConvention kConvention{
    .result = kRax,
    .stack_pointer = kRsp,
    .frame_pointer = kRbp,
    .arguments = kArguments,
    .overwritten = bits_of({kRax, kRcx, kRdx, kRsi, kRdi, 8, 9, 10, 11}),
    .below_stack = 128,  // the red zone
    .return_address_bytes = 8,
    .call_bytes = 5,
    .frame_pointer_at = -16,
    .below_after_bits = false,
};

}  // namespace oomrec::machine_code
