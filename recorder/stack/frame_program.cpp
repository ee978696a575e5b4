#include "recorder/stack/frame_program.h"

#include <array>

namespace oomrec::stack {
namespace {

class Machine {
 public:
  Machine(const FrameEntry& entry, std::uint64_t address) noexcept
      : entry_(entry), address_(address), location_(entry.start) {}

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
          set(low, {RegisterRule::cfa_cell, factored(code.uleb())});
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
        return set_next(code, [&] {
          return RegisterRule{RegisterRule::cfa_cell, factored(code.uleb())};
        });
      case 0x06:
        return restore(code.uleb());
      case 0x07:
        return set_next(code, [] { return RegisterRule{RegisterRule::undefined}; });
      case 0x08:
        return set_next(code, [] { return RegisterRule{RegisterRule::unchanged}; });
      case 0x09:
        return set_next(
            code, [&] { return code.uleb(), RegisterRule{RegisterRule::other}; });  // register
      case 0x0a:
        return remember_state();
      case 0x0b:
        return restore_state();
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
          return RegisterRule{RegisterRule::expression_cell, 0, code.take(code.uleb())};
        });
      case 0x11:
        return set_next(code, [&] {
          return RegisterRule{RegisterRule::cfa_cell, scaled(code.sleb())};
        });
      case 0x12:
        row_.cfa_register = code.uleb();
        row_.cfa_offset = scaled(code.sleb());
        return true;
      case 0x13:
        row_.cfa_offset = scaled(code.sleb());
        return true;
      case 0x14:
        return set_next(
            code, [&] { return code.uleb(), RegisterRule{RegisterRule::other}; });  // val_offset
      case 0x15:
        return set_next(code, [&] { return code.sleb(), RegisterRule{RegisterRule::other}; });
      case 0x16:  // val_expression
        return set_next(code,
                        [&] { return code.take(code.uleb()), RegisterRule{RegisterRule::other}; });
      case 0x2d:  // AARCH64_negate_ra_state: signed from here on, or no longer
        return machine::kSignsReturns;
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

  bool set(std::uint64_t number, const RegisterRule& rule) noexcept {
    if (number == kBp) row_.bp = rule;
    if (number == kReturn) row_.pc = rule;
    if (number == kSp) row_.sp_is_special = rule.kind != RegisterRule::unchanged;
    return true;
  }
  template <class Make>
  bool set_next(DwarfReader& code, Make make) noexcept {
    const std::uint64_t number = code.uleb();
    return set(number, make());
  }
  bool restore(std::uint64_t number) noexcept {
    if (number == kBp) row_.bp = initial_.bp;
    if (number == kReturn) row_.pc = initial_.pc;
    if (number == kSp) row_.sp_is_special = initial_.sp_is_special;
    return true;
  }
  bool remember_state() noexcept {
    if (depth_ == states_.size()) return false;
    states_[depth_++] = row_;
    return true;
  }
  bool restore_state() noexcept {
    if (depth_ == 0) return false;
    row_ = states_[--depth_];
    return true;
  }

  const FrameEntry& entry_;
  const std::uint64_t address_;
  std::uint64_t location_;
  bool arrived_ = false;
  Row row_;
  Row initial_;
  std::array<Row, 6> states_;
  std::size_t depth_ = 0;
};

}  // namespace

bool run_program(const FrameEntry& entry, std::uint64_t address, Row& row) noexcept {
  return Machine{entry, address}.run(row);
}

}  // namespace oomrec::stack
