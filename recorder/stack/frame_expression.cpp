#include <array>
#include <utility>

#include "recorder/stack/frame_program.h"

namespace oomrec::stack {
namespace {

class Evaluator {
 public:
  explicit Evaluator(std::uint64_t pc) noexcept : pc_(pc) {}

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
    if (machine::kExpressionsHavePc && number == kReturn)
      return push_constant(static_cast<std::int64_t>(pc_) + offset);
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

}  // namespace

bool evaluate(DwarfReader expression, std::uint64_t pc, Term& result) noexcept {
  return Evaluator{pc}.run(expression, result);
}

}  // namespace oomrec::stack
