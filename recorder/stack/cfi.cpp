#include "recorder/stack/cfi.h"

#include <array>
#include <string_view>

#include "recorder/stack/dwarf_reader.h"

namespace oomrec::stack {
namespace {

constexpr std::uint64_t kBp = 6, kSp = 7, kPc = 16;  // DWARF's numbers of the registers we follow

// What a DWARF expression comes to, as far as pc, sp and bp carry it: a register or nothing, plus a
// constant; `cell`: the word at that address. Covers all that compilers and glibc emit for frames
// we support: PLT entries (sp + 8 + 8·(pc's low bits ≥ n)), realigned frames (the word at bp − 8).
struct Term {
  std::uint64_t base = kNoBase;
  std::int64_t constant = 0;
  bool cell = false;

  static constexpr std::uint64_t kNoBase = ~std::uint64_t{0};
  bool is_constant() const noexcept { return base == kNoBase && !cell; }
};

// How the caller's value of a register is found.
struct Place {
  enum Kind : std::uint8_t {
    unchanged,
    undefined,
    cfa_cell,
    expression_cell,
    other
  } kind = unchanged;
  std::int64_t offset = 0;   // of cfa_cell
  DwarfReader expression{};  // of expression_cell: the cell's address
};

struct Row {
  std::uint64_t cfa_register = kNoRegister;  // kNoRegister: by expression
  std::int64_t cfa_offset = 0;
  DwarfReader cfa_expression{};
  Place bp{};
  Place pc{};
  bool sp_is_special = false;  // the caller's sp is not the CFA

  static constexpr std::uint64_t kNoRegister = ~std::uint64_t{0};
};

struct Entry {  // one FDE with its CIE
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::uint64_t code_alignment = 0;
  std::int64_t data_alignment = 0;
  std::uint64_t return_register = 0;
  std::uint8_t pointer_encoding = 0;
  bool signal = false;
  DwarfReader initial{};
  DwarfReader program{};
};

// --- Expressions --------------------------------------------------------------------------------

class Evaluator {
 public:
  explicit Evaluator(std::uint64_t pc) noexcept : pc_(pc) {}

  // False: something we do not follow.
  bool run(DwarfReader code, Term& result) noexcept {
    while (!code.at_end()) {
      if (!operation(code)) return false;
    }
    return code.ok() && pop(result);
  }

 private:
  bool operation(DwarfReader& code) noexcept {
    const auto op = code.read<std::uint8_t>();
    if (op >= 0x30 && op <= 0x4f) return push_constant(op - 0x30);                // DW_OP_lit…
    if (op >= 0x70 && op <= 0x8f) return push_register(op - 0x70u, code.sleb());  // DW_OP_breg…
    switch (op) {
      case 0x06:
        return dereference();
      case 0x08:
        return push_constant(code.read<std::uint8_t>());
      case 0x09:
        return push_constant(code.read<std::int8_t>());
      case 0x0a:
        return push_constant(code.read<std::uint16_t>());
      case 0x0b:
        return push_constant(code.read<std::int16_t>());
      case 0x0c:
        return push_constant(code.read<std::uint32_t>());
      case 0x0d:
        return push_constant(code.read<std::int32_t>());
      case 0x10:
        return push_constant(static_cast<std::int64_t>(code.uleb()));
      case 0x11:
        return push_constant(code.sleb());
      case 0x1a:
        return both_constant([](auto a, auto b) { return a & b; });
      case 0x22:
        return add();
      case 0x23:
        return push_constant(static_cast<std::int64_t>(code.uleb())) && add();
      case 0x24:
        return both_constant([](auto a, auto b) { return b < 64 ? a << b : 0; });
      case 0x2a:
        return both_constant([](auto a, auto b) {
          return std::uint64_t{static_cast<std::int64_t>(a) >= static_cast<std::int64_t>(b)};
        });
      default:
        return false;
    }
  }

  bool push(const Term& term) noexcept {
    if (depth_ == stack_.size()) return false;
    stack_[depth_++] = term;
    return true;
  }
  bool pop(Term& term) noexcept {
    if (depth_ == 0) return false;
    term = stack_[--depth_];
    return true;
  }
  bool push_constant(std::int64_t value) noexcept { return push({.constant = value}); }
  bool push_register(std::uint64_t number, std::int64_t offset) noexcept {
    if (number == kPc) return push_constant(static_cast<std::int64_t>(pc_) + offset);
    return (number == kSp || number == kBp) && push({.base = number, .constant = offset});
  }
  bool dereference() noexcept {
    if (depth_ == 0 || stack_[depth_ - 1].cell || stack_[depth_ - 1].is_constant()) return false;
    stack_[depth_ - 1].cell = true;
    return true;
  }
  bool add() noexcept {
    Term a, b;
    if (!pop(b) || !pop(a)) return false;
    if (!b.is_constant()) std::swap(a, b);
    if (!b.is_constant() || a.cell) return false;
    a.constant += b.constant;
    return push(a);
  }
  template <class Operation>
  bool both_constant(Operation operation) noexcept {
    Term a, b;
    if (!pop(b) || !pop(a) || !a.is_constant() || !b.is_constant()) return false;
    return push_constant(static_cast<std::int64_t>(
        operation(static_cast<std::uint64_t>(a.constant), static_cast<std::uint64_t>(b.constant))));
  }

  const std::uint64_t pc_;
  std::array<Term, 8> stack_;
  std::size_t depth_ = 0;
};

// --- Finding the entry --------------------------------------------------------------------------

// One CIE or FDE: its body behind the length word. 64-bit entries are not used on x86-64.
DwarfReader entry_at(const AddressRange& frames, std::uint64_t at) noexcept {
  if (!frames.holds(at, 4)) return {};
  DwarfReader reader{at, frames.end};
  const auto bytes = reader.read<std::uint32_t>();
  if (bytes == 0 || bytes == 0xffffffff) return {};
  return reader.take(bytes);
}

bool read_common(const AddressRange& frames, std::uint64_t at, Entry& entry) noexcept {
  DwarfReader cie = entry_at(frames, at);
  if (cie.read<std::uint32_t>() != 0) return false;  // an FDE, or nothing
  const auto version = cie.read<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  const std::uint64_t text = cie.position();
  while (cie.ok() && cie.read<char>() != '\0') {
  }
  if (!cie.ok()) return false;
  std::string_view augmentation{reinterpret_cast<const char*>(text), cie.position() - text - 1};
  entry.code_alignment = cie.uleb();
  entry.data_alignment = cie.sleb();
  entry.return_register = version == 1 ? cie.read<std::uint8_t>() : cie.uleb();
  if (!augmentation.empty()) {
    if (!augmentation.starts_with('z')) return false;
    DwarfReader data = cie.take(cie.uleb());
    for (const char letter : augmentation.substr(1)) {
      if (letter == 'R') {
        entry.pointer_encoding = data.read<std::uint8_t>();
      } else if (letter == 'P') {
        const auto encoding = data.read<std::uint8_t>();
        data.pointer(encoding & 0x0f, 0);  // its value does not matter, its length does
      } else if (letter == 'L') {
        data.read<std::uint8_t>();
      } else if (letter == 'S') {
        entry.signal = true;
      } else {
        return false;
      }
    }
    if (!data.ok()) return false;
  }
  entry.initial = cie;
  return cie.ok() && entry.return_register == kPc;
}

bool read_entry(const AddressRange& frames, std::uint64_t at, Entry& entry) noexcept {
  DwarfReader fde = entry_at(frames, at);
  const std::uint64_t here = fde.position();
  const auto back = fde.read<std::uint32_t>();
  if (back == 0 || !fde.ok() || !read_common(frames, here - back, entry)) return false;
  entry.start = fde.pointer(entry.pointer_encoding, 0);
  entry.bytes = fde.pointer(entry.pointer_encoding & 0x0f, 0);
  fde.skip(fde.uleb());  // augmentation data: the language's own
  entry.program = fde;
  return fde.ok();
}

enum class Found : std::uint8_t { nothing, entry, not_understood };

// The FDE that covers `address`, by the sorted table of .eh_frame_hdr.
Found find_entry(const KnownModule& module, std::uint64_t address, Entry& entry) noexcept {
  const AddressRange header = module.eh_frame_header;
  if (header.start == header.end) return Found::nothing;
  DwarfReader reader{header.start, header.end};
  const auto version = reader.read<std::uint8_t>();
  const auto frames_encoding = reader.read<std::uint8_t>();
  const auto count_encoding = reader.read<std::uint8_t>();
  const auto table_encoding = reader.read<std::uint8_t>();
  const std::uint64_t frames_start = reader.pointer(frames_encoding, header.start);
  const std::uint64_t count = reader.pointer(count_encoding, header.start);
  constexpr std::uint8_t kSortedTable = 0x3b;  // data-relative, signed 4 bytes: what linkers write
  if (!reader.ok() || version != 1 || table_encoding != kSortedTable) return Found::not_understood;

  struct TableRow {
    std::int32_t start, entry;
  };
  const std::uint64_t table = reader.position();
  if (count == 0) return Found::nothing;
  if (count > (header.end - table) / sizeof(TableRow)) return Found::not_understood;
  const auto row = [table](std::uint64_t i) {
    TableRow value;
    std::memcpy(&value, reinterpret_cast<const void*>(table + i * sizeof value), sizeof value);
    return value;
  };
  const auto key = static_cast<std::int64_t>(address - header.start);
  std::uint64_t low = 0;
  std::uint64_t high = count;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (row(middle).start <= key ? low : high) = middle;
  }
  if (row(low).start > key) return Found::nothing;

  const AddressRange frames = module.segment_at(frames_start, PF_R);
  const auto offset = static_cast<std::uint64_t>(std::int64_t{row(low).entry});
  if (!read_entry(frames, header.start + offset, entry)) return Found::not_understood;
  return address - entry.start < entry.bytes ? Found::entry : Found::nothing;
}

// --- Programs -----------------------------------------------------------------------------------

class Machine {
 public:
  Machine(const Entry& entry, std::uint64_t address) noexcept
      : entry_(entry), address_(address), location_(entry.start) {}

  // The row that holds at the address. False: an instruction we do not know.
  bool run(Row& row) noexcept {
    if (!execute(entry_.initial)) return false;
    initial_ = row_;
    if (!execute(entry_.program)) return false;
    row = row_;
    return true;
  }

 private:
  bool execute(DwarfReader code) noexcept {
    while (!code.at_end() && !arrived_) {
      const auto byte = code.read<std::uint8_t>();
      const std::uint8_t low = byte & 0x3f;
      switch (byte >> 6) {
        case 1:
          advance(low);
          break;
        case 2:
          set(low, {Place::cfa_cell, factored(code.uleb())});
          break;
        case 3:
          restore(low);
          break;
        default:
          if (!extended(low, code)) return false;
      }
    }
    return code.ok();
  }

  bool extended(std::uint8_t op, DwarfReader& code) noexcept {
    switch (op) {
      case 0x00:
        return true;  // nop
      case 0x01:
        return set_location(code.pointer(entry_.pointer_encoding, 0));
      case 0x02:
        return advance(code.read<std::uint8_t>());
      case 0x03:
        return advance(code.read<std::uint16_t>());
      case 0x04:
        return advance(code.read<std::uint32_t>());
      case 0x05:
        return set_next(code, [&] { return Place{Place::cfa_cell, factored(code.uleb())}; });
      case 0x06:
        return restore(code.uleb());
      case 0x07:
        return set_next(code, [] { return Place{Place::undefined}; });
      case 0x08:
        return set_next(code, [] { return Place{Place::unchanged}; });
      case 0x09:
        return set_next(code, [&] { return code.uleb(), Place{Place::other}; });  // register
      case 0x0a:
        return remember();
      case 0x0b:
        return recall();
      case 0x0c:
        row_.cfa_register = code.uleb();
        row_.cfa_offset = static_cast<std::int64_t>(code.uleb());
        return true;
      case 0x0d:
        row_.cfa_register = code.uleb();
        return true;
      case 0x0e:
        row_.cfa_offset = static_cast<std::int64_t>(code.uleb());
        return true;
      case 0x0f:
        row_.cfa_register = Row::kNoRegister;
        row_.cfa_expression = code.take(code.uleb());
        return true;
      case 0x10:
        return set_next(code, [&] {
          return Place{Place::expression_cell, 0, code.take(code.uleb())};
        });
      case 0x11:
        return set_next(code, [&] { return Place{Place::cfa_cell, scaled(code.sleb())}; });
      case 0x12:
        row_.cfa_register = code.uleb();
        row_.cfa_offset = scaled(code.sleb());
        return true;
      case 0x13:
        row_.cfa_offset = scaled(code.sleb());
        return true;
      case 0x14:
        return set_next(code, [&] { return code.uleb(), Place{Place::other}; });  // val_offset
      case 0x15:
        return set_next(code, [&] { return code.sleb(), Place{Place::other}; });
      case 0x16:  // val_expression
        return set_next(code, [&] { return code.take(code.uleb()), Place{Place::other}; });
      case 0x2e:
        return code.uleb(), true;  // GNU_args_size
      default:
        return false;
    }
  }

  bool set_location(std::uint64_t location) noexcept {
    if (location > address_) {
      arrived_ = true;
    } else {
      location_ = location;
    }
    return true;
  }
  bool advance(std::uint64_t units) noexcept {
    return set_location(location_ + units * entry_.code_alignment);
  }
  std::int64_t scaled(std::int64_t value) const noexcept { return value * entry_.data_alignment; }
  std::int64_t factored(std::uint64_t value) const noexcept {
    return scaled(static_cast<std::int64_t>(value));
  }

  bool set(std::uint64_t number, const Place& place) noexcept {
    if (number == kBp) row_.bp = place;
    if (number == kPc) row_.pc = place;
    if (number == kSp) row_.sp_is_special = place.kind != Place::unchanged;
    return true;
  }
  template <class Make>
  bool set_next(DwarfReader& code, Make make) noexcept {
    const std::uint64_t number = code.uleb();
    return set(number, make());
  }
  bool restore(std::uint64_t number) noexcept {
    if (number == kBp) row_.bp = initial_.bp;
    if (number == kPc) row_.pc = initial_.pc;
    if (number == kSp) row_.sp_is_special = initial_.sp_is_special;
    return true;
  }
  bool remember() noexcept {
    if (depth_ == remembered_.size()) return false;
    remembered_[depth_++] = row_;
    return true;
  }
  bool recall() noexcept {
    if (depth_ == 0) return false;
    row_ = remembered_[--depth_];
    return true;
  }

  const Entry& entry_;
  const std::uint64_t address_;
  std::uint64_t location_;
  bool arrived_ = false;
  Row row_;
  Row initial_;
  std::array<Row, 6> remembered_;
  std::size_t depth_ = 0;
};

// --- From a row to a rule -----------------------------------------------------------------------

constexpr std::int64_t kLargestCfaOffset = (std::int64_t{1} << 27) - 1;

bool cfa_rule(const Row& row, std::uint64_t address, Rule& rule) noexcept {
  Term cfa{row.cfa_register, row.cfa_offset};
  if (row.cfa_register == Row::kNoRegister && !Evaluator{address}.run(row.cfa_expression, cfa)) {
    return false;
  }
  if (cfa.constant > kLargestCfaOffset || cfa.constant < -kLargestCfaOffset) return false;
  rule.cfa_offset = static_cast<std::int32_t>(cfa.constant);
  if (cfa.base == kSp && !cfa.cell) {
    rule.cfa = CfaBase::sp;
  } else if (cfa.base == kBp) {
    rule.cfa = cfa.cell ? CfaBase::bp_cell : CfaBase::bp;
  } else {
    return false;
  }
  return true;
}

bool bp_rule(const Row& row, std::uint64_t address, Rule& rule) noexcept {
  Term cell{.constant = row.bp.offset};
  switch (row.bp.kind) {
    case Place::unchanged:
      rule.bp = BpPlace::unchanged;
      return true;
    case Place::undefined:
      rule.bp = BpPlace::lost;
      return true;
    case Place::cfa_cell:
      rule.bp = BpPlace::cfa_cell;
      break;
    case Place::expression_cell:
      if (!Evaluator{address}.run(row.bp.expression, cell) || cell.base != kBp || cell.cell) {
        return false;
      }
      rule.bp = BpPlace::bp_cell;
      break;
    case Place::other:
      return false;
  }
  rule.bp_offset = static_cast<std::int16_t>(cell.constant);
  return rule.bp_offset == cell.constant;
}

}  // namespace

Rule compile_rule(InHook, const KnownModule& module, std::uint64_t address) noexcept {
  Rule rule;
  Entry entry;
  switch (find_entry(module, address, entry)) {
    case Found::nothing:
      // A return address that nobody called from, at the very start of a function: makecontext()
      // and its like put it there to catch the outermost function's return.
      if (find_entry(module, address + 1, entry) == Found::entry && entry.start == address + 1) {
        rule.kind = RuleKind::end;
      }
      return rule;
    case Found::not_understood:
      rule.kind = RuleKind::unsupported;
      return rule;
    case Found::entry:
      break;
  }
  if (entry.signal) {
    rule.kind = RuleKind::signal;
    return rule;
  }
  rule.kind = RuleKind::unsupported;
  Row row;
  if (!Machine{entry, address}.run(row)) return rule;
  if (row.pc.kind == Place::undefined) {
    rule.kind = RuleKind::end;
    return rule;
  }
  if (row.pc.kind != Place::cfa_cell || row.pc.offset != -8 || row.sp_is_special) return rule;
  if (cfa_rule(row, address, rule) && bp_rule(row, address, rule)) rule.kind = RuleKind::step;
  return rule;
}

}  // namespace oomrec::stack
