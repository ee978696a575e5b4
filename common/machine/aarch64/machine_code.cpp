// Arm's Architecture Reference Manual for A-profile, part C4: the encodings of A64. Each
// instruction is a word, whose bits 28 to 25 select a group.
#include "common/machine/machine_code.h"

namespace oomrec::machine_code {
namespace {

constexpr std::uint8_t kStackPointer = 31;
constexpr std::uint8_t kArguments[] = {0, 1, 2, 3};

// By the encoding's number. `below` is a clear carry.
constexpr std::uint8_t kConditions[] = {
    kEqual,           kEqual + 1,    kBelow + 1,        kBelow,        kNegative, kNegative + 1,
    kOverflow,        kOverflow + 1, kBelowOrEqual + 1, kBelowOrEqual, kLess + 1, kLess,
    kLessOrEqual + 1, kLessOrEqual,  kAlways,           kAlways};

constexpr std::uint64_t ones(unsigned bits) noexcept {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// The manual's DecodeBitMasks: a run of ones, rotated, repeated. False: reserved.
bool read_bitmask(unsigned n, unsigned imms, unsigned immr, std::uint64_t& mask) noexcept {
  const unsigned size_bits = n << 6 | (~imms & 63);
  if (size_bits < 2) return false;
  unsigned size = 64;
  while ((size_bits & size) == 0) size >>= 1;
  const unsigned run = imms & (size - 1);
  const unsigned rotation = immr & (size - 1);
  if (run == size - 1) return false;
  const std::uint64_t element = ones(run + 1);
  mask =
      rotation == 0 ? element : (element >> rotation | element << (size - rotation)) & ones(size);
  for (unsigned width = size; width < 64; width *= 2) mask |= mask << width;
  return true;
}

class Decoder {
 public:
  Decoder(std::uint32_t word, Instruction& out) noexcept : word_(word), out_(out) {}

  bool run() noexcept {
    out_.length = 4;
    out_.bytes = is_set(31) ? 8 : 4;
    switch (bits(25, 4)) {
      case 0b0000:
        return read_reserved();
      case 0b1000:
      case 0b1001:
        return read_immediate();
      case 0b1010:
      case 0b1011:
        return read_branch();
      case 0b0100:
      case 0b0110:
      case 0b1100:
      case 0b1110:
        return read_memory();
      case 0b0101:
      case 0b1101:
        return read_register();
      case 0b0111:
      case 0b1111:
        return read_vector();
      default:
        return false;  // scalable vectors, and what is not allocated
    }
  }

 private:
  unsigned bits(unsigned first, unsigned count) const noexcept {
    return word_ >> first & static_cast<unsigned>(ones(count));
  }
  bool is_set(unsigned bit) const noexcept { return bits(bit, 1) != 0; }
  bool matches(std::uint32_t mask, std::uint32_t value) const noexcept {
    return (word_ & mask) == value;
  }
  std::int64_t signed_bits(unsigned first, unsigned count) const noexcept {
    const std::uint64_t sign = std::uint64_t{1} << (count - 1);
    return static_cast<std::int64_t>((bits(first, count) ^ sign) - sign);
  }

  // Number 31 is the register that reads as zero, or the stack pointer.
  Operand general(unsigned first) const noexcept {
    const auto number = static_cast<std::uint8_t>(bits(first, 5));
    if (number == 31) return {OperandKind::zero, kNoRegister};
    return {OperandKind::reg, number};
  }
  Operand general_or_stack(unsigned first) const noexcept {
    return {OperandKind::reg, static_cast<std::uint8_t>(bits(first, 5))};
  }
  static constexpr Operand immediate() noexcept { return {OperandKind::immediate, kNoRegister}; }
  static constexpr Operand memory() noexcept { return {OperandKind::memory, kNoRegister}; }

  bool overwrites(Operand to) noexcept {
    out_.operation = Operation::other;
    out_.to = to;
    return true;
  }

  bool read_reserved() noexcept {
    if (bits(16, 16) != 0) return false;
    out_.operation = Operation::stop;  // udf
    return true;
  }

  // Data processing with an immediate.

  bool read_immediate() noexcept {
    switch (bits(23, 3)) {
      case 0b000:
      case 0b001:
        return read_address();
      case 0b010:
        choose_sum();
        use_stack_pointer();
        out_.from = immediate();
        out_.immediate = static_cast<std::int64_t>(bits(10, 12)) << (is_set(22) ? 12 : 0);
        return true;
      case 0b011:
        return overwrites(general_or_stack(0));  // tagged addresses
      case 0b100:
        return read_logical_immediate();
      case 0b101:
        return read_wide_move();
      case 0b110:
        return read_bitfield();
      default:
        return overwrites(general(0));  // extr
    }
  }

  // add, adds, sub, subs
  void choose_sum() noexcept {
    out_.operation = is_set(30) ? Operation::subtract : Operation::add;
    out_.changes_flags = is_set(29);
    out_.to = general(0);
    out_.left = general(5);
  }

  // Forms in which number 31 is the stack pointer, but as the target of one that sets flags.
  void use_stack_pointer() noexcept {
    if (!out_.changes_flags) out_.to = general_or_stack(0);
    out_.left = general_or_stack(5);
  }

  // and, orr, eor, ands
  void choose_logical() noexcept {
    constexpr Operation kOperations[] = {Operation::bit_and, Operation::bit_or, Operation::bit_xor,
                                         Operation::bit_and};
    out_.operation = kOperations[bits(29, 2)];
    out_.changes_flags = bits(29, 2) == 3;
    out_.to = general(0);
    out_.left = general(5);
  }

  bool read_address() noexcept {  // adr, adrp
    const std::int64_t distance = signed_bits(5, 19) * 4 + bits(29, 2);
    const bool of_page = is_set(31);
    out_.bytes = 8;
    out_.operation = Operation::load_address;
    out_.to = general(0);
    out_.from = memory();
    out_.memory.base = of_page ? kPage : kNextInstruction;
    out_.memory.displacement = of_page ? distance * 4096 : distance - out_.length;
    return true;
  }

  bool read_logical_immediate() noexcept {
    std::uint64_t mask = 0;
    if ((out_.bytes == 4 && is_set(22)) ||
        !read_bitmask(bits(22, 1), bits(10, 6), bits(16, 6), mask))
      return false;
    choose_logical();
    if (!out_.changes_flags) out_.to = general_or_stack(0);
    out_.from = immediate();
    out_.immediate = static_cast<std::int64_t>(mask);
    return true;
  }

  bool read_wide_move() noexcept {
    const unsigned kind = bits(29, 2);
    if (kind == 1 || (out_.bytes == 4 && is_set(22))) return false;
    if (kind == 3) return overwrites(general(0));  // movk: the rest stays
    const std::uint64_t value = std::uint64_t{bits(5, 16)} << (16 * bits(21, 2));
    out_.operation = Operation::move;
    out_.to = general(0);
    out_.from = immediate();
    out_.immediate = static_cast<std::int64_t>(kind == 0 ? ~value : value);
    return true;
  }

  // sbfm, bfm, ubfm: those that extend, and the shift to the left.
  bool read_bitfield() noexcept {
    const unsigned kind = bits(29, 2);
    const unsigned rotation = bits(16, 6);
    const unsigned last = bits(10, 6);
    const unsigned width = 8U * out_.bytes;
    if (kind == 3 || is_set(22) != is_set(31) || rotation >= width || last >= width) return false;
    out_.to = general(0);
    if (kind != 1 && rotation == 0 && (last == 7 || last == 15 || last == 31)) {
      out_.operation = kind == 0 ? Operation::move_signed : Operation::move_zero;
      out_.from = general(5);
      out_.from_bytes = static_cast<std::uint8_t>((last + 1) / 8);
      return true;
    }
    if (kind == 2 && last + 1 == rotation) {
      out_.operation = Operation::move;
      out_.from = general(5);
      out_.from_extension.shift = static_cast<std::uint8_t>(width - rotation);
      return true;
    }
    return overwrites(general(0));
  }

  // Branches, exceptions, system instructions.

  bool branch(Operation operation, unsigned first, unsigned count) noexcept {
    out_.operation = operation;
    out_.immediate = signed_bits(first, count) * 4 - out_.length;
    return true;
  }

  bool read_branch() noexcept {
    if (matches(0x7c000000, 0x14000000))
      return branch(is_set(31) ? Operation::call : Operation::jump, 0, 26);
    if (matches(0xff000000, 0x54000000)) {
      out_.condition = kConditions[bits(0, 4)];
      return branch(Operation::jump_if, 5, 19);
    }
    if (matches(0x7e000000, 0x34000000)) {  // cbz, cbnz: all bits
      out_.condition = static_cast<std::uint8_t>(kEqual + bits(24, 1));
      out_.left = out_.from = general(0);
      return branch(Operation::jump_if_bits, 5, 19);
    }
    if (matches(0x7e000000, 0x36000000)) {  // tbz, tbnz
      out_.condition = static_cast<std::uint8_t>(kEqual + bits(24, 1));
      out_.bytes = 8;
      out_.left = general(0);
      out_.from = {OperandKind::bit, static_cast<std::uint8_t>(bits(31, 1) << 5 | bits(19, 5))};
      return branch(Operation::jump_if_bits, 5, 14);
    }
    if (matches(0xfe1f0000, 0xd61f0000)) return read_branch_to_register();
    if (matches(0xff000000, 0xd4000000)) return read_exception();
    if (matches(0xffc00000, 0xd5000000)) {
      if (is_set(21)) return overwrites(general(0));                   // mrs
      if (matches(0x0000f01f, 0x0000401f)) out_.changes_flags = true;  // cfinv and such
      if (matches(0x001fffe0, 0x001b4200)) out_.changes_flags = true;  // msr nzcv
      return true;  // hints, barriers, caches, other registers of the system
    }
    return false;
  }

  // Also the forms that check a signed address.
  bool read_branch_to_register() noexcept {
    out_.from = general(5);
    switch (bits(21, 4) & 7) {
      case 0: {
        const unsigned target = bits(5, 5);
        out_.operation = Operation::jump_indirect;
        // With branch targets checked, only these two jump to a function's start.
        out_.may_leave = target == 16 || target == 17;
        return true;
      }
      case 1:
        out_.operation = Operation::call;
        return true;
      case 2:
        out_.operation = Operation::leave_function;
        return true;
      default:
        return false;
    }
  }

  bool read_exception() noexcept {
    if (matches(0x00e0001f, 0x00000001)) return overwrites({OperandKind::reg, 0});  // svc
    if (!matches(0x00e0001f, 0x00200000) && !matches(0x00e0001f, 0x00400000)) return false;
    out_.operation = Operation::stop;  // brk, hlt
    return true;
  }

  // Loads and stores.

  bool read_memory() noexcept {
    if (matches(0x3f000000, 0x08000000)) return read_exclusive();
    if (matches(0xbe000000, 0x0c000000)) return read_vector_structure();
    if (matches(0x3b000000, 0x18000000)) return read_literal();
    if (matches(0x3a000000, 0x28000000)) return read_pair();
    if (matches(0x3f200c00, 0x19000000)) {  // ldapur, stlur
      access(5, signed_bits(12, 9));
      return read_access(false);
    }
    if (matches(0x3b000000, 0x39000000)) {
      access(5, static_cast<std::int64_t>(bits(10, 12)) * access_bytes());
      return read_access(is_set(26));
    }
    if (matches(0x3b200000, 0x38000000)) {
      const unsigned form = bits(10, 2);
      const std::int64_t distance = signed_bits(12, 9);
      access(5, form == 1 ? 0 : distance);
      if (!read_access(is_set(26))) return false;
      if ((form & 1) != 0) out_.writeback = distance;  // after or before the access
      return true;
    }
    if (matches(0x3b200c00, 0x38200800)) return read_indexed();
    if (matches(0x3b200c00, 0x38200000)) {  // ldadd, swp and others
      access(5, 0);
      if (bits(12, 4) == 0b1100) return plain_load();  // ldapr
      out_.bytes = access_bytes();
      out_.operation = Operation::exchange;
      out_.to = memory();
      out_.from = general(0);
      return true;
    }
    if (matches(0x3b200400, 0x38200400)) {  // ldraa, ldrab
      access(5, 0);
      out_.has_memory = false;  // the base is a signed address
      return overwrites(general(0));
    }
    return false;
  }

  void access(unsigned base, std::int64_t displacement) noexcept {
    out_.has_memory = true;
    out_.memory.base = static_cast<std::uint8_t>(bits(base, 5));
    out_.memory.displacement = displacement;
  }

  std::uint8_t access_bytes() const noexcept {
    const bool is_quad = is_set(26) && is_set(23);
    return static_cast<std::uint8_t>(is_quad ? 16 : 1U << bits(30, 2));
  }

  // By size and opc, bits 30 and 22.
  bool read_access(bool is_vector) noexcept {
    const unsigned kind = bits(22, 2);
    const auto bytes = access_bytes();
    if (is_vector) return vector_access((kind & 1) != 0, bytes);
    if (kind == 2 && bytes == 8) {  // prfm
      out_.has_memory = false;
      return true;
    }
    if (kind == 3 && bytes >= 4) return false;
    if (kind == 0) {
      out_.bytes = bytes;
      out_.operation = Operation::move;
      out_.to = memory();
      out_.from = general(0);
      return true;
    }
    if (kind == 1) return plain_load();
    out_.operation = Operation::move_signed;
    out_.bytes = kind == 3 ? 4 : 8;
    out_.to = general(0);
    out_.from = memory();
    out_.from_bytes = bytes;
    return true;
  }

  // Zero-extended.
  bool plain_load() noexcept {
    out_.operation = Operation::move_zero;
    out_.from_bytes = static_cast<std::uint8_t>(1U << bits(30, 2));
    out_.bytes = out_.from_bytes == 8 ? 8 : 4;
    out_.to = general(0);
    out_.from = memory();
    return true;
  }

  bool vector_access(bool loads, std::uint8_t bytes) noexcept {
    out_.bytes = bytes;
    return overwrites(loads ? Operand{} : memory());
  }

  bool read_literal() noexcept {
    const unsigned kind = bits(30, 2);
    access(5, signed_bits(5, 19) * 4 - out_.length);
    out_.memory.base = kNextInstruction;
    if (is_set(26)) return kind != 3 && vector_access(true, static_cast<std::uint8_t>(4U << kind));
    if (kind == 3) {  // prfm
      out_.has_memory = false;
      return true;
    }
    out_.operation = kind == 2 ? Operation::move_signed : Operation::move_zero;
    out_.bytes = kind == 0 ? 4 : 8;
    out_.from_bytes = kind == 1 ? 8 : 4;
    out_.to = general(0);
    out_.from = memory();
    return true;
  }

  bool read_pair() noexcept {
    const unsigned kind = bits(30, 2);
    const unsigned form = bits(23, 2);  // 1: after, 3: before
    const bool loads = is_set(22);
    const bool is_vector = is_set(26);
    if (kind == 3 || (kind == 1 && !is_vector && !loads)) return false;
    const auto bytes = static_cast<std::uint8_t>(is_vector ? 4U << kind : kind == 2 ? 8 : 4);
    const std::int64_t distance = signed_bits(15, 7) * bytes;
    access(5, form == 1 ? 0 : distance);
    if ((form & 1) != 0) out_.writeback = distance;
    if (is_vector) return vector_access(loads, static_cast<std::uint8_t>(2 * bytes));
    out_.bytes = bytes;
    if (kind == 1) {  // ldpsw
      out_.operation = Operation::exchange;
      out_.to = general(0);
      out_.from = general(10);
      return true;
    }
    out_.operation = Operation::move;
    out_.to = loads ? general(0) : memory();
    out_.from = loads ? memory() : general(0);
    out_.second = general(10);
    return true;
  }

  bool read_indexed() noexcept {
    const unsigned option = bits(13, 3);
    if ((option & 2) == 0) return false;
    access(5, 0);
    out_.memory.index_extension = extension(option);
    if (is_set(12)) {
      unsigned shift = 0;
      while (1U << shift < access_bytes()) ++shift;
      out_.memory.index_extension.shift = static_cast<std::uint8_t>(shift);
    }
    if (bits(16, 5) != 31) out_.memory.index = static_cast<std::uint8_t>(bits(16, 5));
    return read_access(is_set(26));
  }

  static Extension extension(unsigned option) noexcept {
    return {static_cast<std::uint8_t>(1U << (option & 3)), (option & 4) != 0, 0};
  }

  // ldxr, stxr, ldar, stlr, cas and their pairs.
  bool read_exclusive() noexcept {
    const bool ordered = is_set(23);
    const bool loads = is_set(22);
    const bool is_pair = is_set(21) && !ordered;
    access(5, 0);
    out_.bytes = static_cast<std::uint8_t>(1U << bits(30, 2));
    if (is_set(21)) {  // cas, or pairs: all registers that it may write are lost
      out_.operation = Operation::exchange;
      if (!is_pair || bits(30, 2) < 2) {
        out_.to = memory();
        out_.from = general(16);
      } else {
        out_.to = loads ? general(0) : memory();
        out_.from = loads ? general(10) : general(16);
      }
      return true;
    }
    if (loads) return plain_load();
    out_.operation = ordered ? Operation::move : Operation::exchange;
    out_.to = memory();
    out_.from = general(ordered ? 0 : 16);
    return true;
  }

  // ld1 to ld4, st1 to st4: with a writeback, the base is lost.
  bool read_vector_structure() noexcept {
    access(5, 0);
    return overwrites(is_set(23) ? general_or_stack(5) : Operand{});
  }

  // Data processing with registers.

  bool read_register() noexcept {
    if (!is_set(28)) return is_set(24) ? read_addition() : read_logical();
    switch (bits(21, 4)) {
      case 0b0000:  // adc, sbc, and flags from registers
        out_.changes_flags = is_set(29);
        return overwrites(general(0));
      case 0b0010:
        return read_conditional_comparison();
      case 0b0100:
        return read_selection();
      case 0b0110:
        out_.changes_flags = is_set(29);  // of tagged addresses
        return overwrites(general(0));    // of one source or two
      default:
        return is_set(24) && read_multiplication();
    }
  }

  bool read_logical() noexcept {
    choose_logical();
    read_shifted(is_set(21));
    return true;
  }

  // Shifts to the right, rotations and inverted operands are not known, but for no shift at all.
  void read_shifted(bool is_inverted) noexcept {
    const unsigned amount = bits(10, 6);
    if (is_inverted || (bits(22, 2) != 0 && amount != 0)) return;
    out_.from = general(16);
    out_.from_extension.shift = static_cast<std::uint8_t>(amount);
  }

  bool read_addition() noexcept {
    choose_sum();
    if (!is_set(21)) {
      read_shifted(false);
      return true;
    }
    use_stack_pointer();
    out_.from = general(16);
    out_.from_extension = extension(bits(13, 3));
    out_.from_extension.shift = static_cast<std::uint8_t>(bits(10, 3));
    return true;
  }

  bool read_conditional_comparison() noexcept {  // ccmp, ccmn
    out_.condition = kConditions[bits(12, 4)];
    out_.operation = Operation::compare_if;
    out_.left = general(5);
    out_.otherwise = {is_set(2), is_set(3), !is_set(1), is_set(0)};
    if (!is_set(11)) {
      if (is_set(30)) out_.from = general(16);  // the sum of two registers: not known
      return true;
    }
    out_.from = immediate();
    out_.immediate = bits(16, 5);
    if (!is_set(30)) out_.immediate = -out_.immediate;
    return true;
  }

  // csel, csinc, csinv, csneg: where the other one is taken, it is known if it is zero or as it is.
  bool read_selection() noexcept {
    out_.operation = Operation::move_if;
    out_.condition = kConditions[bits(12, 4)];
    out_.to = general(0);
    out_.from = general(5);
    const unsigned change = bits(30, 1) << 1 | bits(10, 1);
    const Operand other = general(16);
    if (change == 0) {
      out_.left = other;
    } else if (other.kind == OperandKind::zero && change != 3) {
      out_.left = immediate();
      out_.immediate = change == 1 ? 1 : -1;
    }
    return true;
  }

  // madd and msub: a product that is not known is added. mul and the high half of a product.
  bool read_multiplication() noexcept {
    out_.operation = Operation::add;
    out_.to = general(0);
    out_.left = general(10);
    if (bits(21, 3) == 2 || bits(21, 3) == 6) out_.left = {};
    return true;
  }

  // Vector registers are not followed, but some results go to a general register, or to the flags.
  bool read_vector() noexcept {
    if (matches(0x5f200c00, 0x1e200000)) {
      const unsigned kind = bits(16, 3);
      if (bits(10, 6) != 0) {  // fcmp, fmov of a constant, or of one source
        out_.changes_flags = bits(10, 4) == 8;
        return true;
      }
      return kind == 2 || kind == 3 || kind == 7 || overwrites(general(0));
    }
    if (matches(0x5f200c00, 0x1e200400)) {  // fccmp
      out_.changes_flags = true;
      return true;
    }
    if (matches(0x5f200000, 0x1e000000)) {  // to and from fixed point
      const unsigned kind = bits(16, 3);
      return kind == 2 || kind == 3 || overwrites(general(0));
    }
    if (matches(0xbfe0fc00, 0x0e003c00) || matches(0xbfe0fc00, 0x0e002c00))  // umov, smov
      return overwrites(general(0));
    return true;
  }

  const std::uint32_t word_;
  Instruction& out_;
};

}  // namespace

bool decode(std::span<const std::uint8_t> code, Instruction& instruction) noexcept {
  instruction = {};
  if (code.size() < 4) return false;
  std::uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) word |= std::uint32_t{code[i]} << (8 * i);
  return Decoder{word, instruction}.run();
}

constinit const CallingConvention kConvention{
    .result = 0,
    .stack_pointer = kStackPointer,
    .frame_pointer = 29,
    .arguments = kArguments,
    .overwritten = ones(19) | std::uint64_t{1} << 30,
    .below_stack = 512,  // the furthest that a store which moves the stack pointer reaches
    .return_address_bytes = 0,
    .call_bytes = 4,
    .frame_pointer_at = 0,
    .below_after_bits = true,
};

}  // namespace oomrec::machine_code
