// RFC 2603, "Rust symbol name mangling v0". The functions of Reader are the rules of its grammar.
#include <algorithm>

#include "common/names/names.h"
#include "common/text/text.h"

namespace oomrec::names {
namespace {

constexpr unsigned kDeepest = 64;         // of rules in each other: the helper's stack is small
constexpr unsigned kMostRules = 1 << 16;  // back references can repeat a part without end
constexpr std::uint64_t kMostLifetimes = 1000;
constexpr std::size_t kMostCharacters = 128;  // of an identifier that is not ASCII

constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }

std::string_view basic_type(char tag) noexcept {
  struct Basic {
    char tag;
    std::string_view name;
  };
  static constexpr Basic kBasics[] = {
      {'a', "i8"},   {'b', "bool"},  {'c', "char"},  {'d', "f64"}, {'e', "str"}, {'f', "f32"},
      {'h', "u8"},   {'i', "isize"}, {'j', "usize"}, {'l', "i32"}, {'m', "u32"}, {'n', "i128"},
      {'o', "u128"}, {'p', "_"},     {'s', "i16"},   {'t', "u16"}, {'u', "()"},  {'v', "..."},
      {'x', "i64"},  {'y', "u64"},   {'z', "!"}};
  for (const Basic& basic : kBasics)
    if (basic.tag == tag) return basic.name;
  return {};
}

// RFC 3492 with "_" for "-". False: not Punycode, or too long.
class Punycode {
 public:
  bool decode(std::string_view text) noexcept {
    const auto delimiter = text.rfind('_');
    if (delimiter != text.npos) {
      for (const char c : text.substr(0, delimiter))
        if (!insert(count_, static_cast<unsigned char>(c))) return false;
      text.remove_prefix(delimiter + 1);
    }
    std::uint64_t point = 128;
    std::uint64_t at = 0;
    std::uint64_t bias = 72;
    while (!text.empty()) {
      const std::uint64_t before = at;
      std::uint64_t weight = 1;
      for (std::uint64_t k = 36;; k += 36) {
        if (text.empty()) return false;
        const char c = text[0];
        text.remove_prefix(1);
        if (!is_digit(c) && !is_lower(c)) return false;
        const std::uint64_t digit =
            static_cast<std::uint64_t>(is_digit(c) ? c - '0' + 26 : c - 'a');
        at += digit * weight;
        const std::uint64_t threshold = k <= bias ? 1 : std::min<std::uint64_t>(k - bias, 26);
        if (digit < threshold) break;
        weight *= 36 - threshold;
        if (at > kMostValue || weight > kMostValue) return false;
      }
      const std::uint64_t length = count_ + 1;
      bias = adapted(at - before, length, before == 0);
      point += at / length;
      at %= length;
      if (point > 0x10'ffff || !insert(at, static_cast<char32_t>(point))) return false;
      ++at;
    }
    return true;
  }
  const char32_t* begin() const noexcept { return points_; }
  const char32_t* end() const noexcept { return points_ + count_; }

 private:
  static constexpr std::uint64_t kMostValue = std::uint64_t{1} << 32;

  bool insert(std::uint64_t at, char32_t point) noexcept {
    if (count_ == kMostCharacters || at > count_) return false;
    for (std::size_t i = count_; i > at; --i) points_[i] = points_[i - 1];
    points_[at] = point;
    ++count_;
    return true;
  }
  static std::uint64_t adapted(std::uint64_t delta, std::uint64_t length, bool is_first) noexcept {
    delta /= is_first ? 700 : 2;
    delta += delta / length;
    std::uint64_t k = 0;
    for (; delta > 35 * 26 / 2; k += 36) delta /= 35;
    return k + 36 * delta / (delta + 38);
  }

  char32_t points_[kMostCharacters];
  std::size_t count_ = 0;
};

// In an expression "Vec::<u8>", in a type "Vec<u8>".
enum class In : std::uint8_t { expression, type };

class Reader {
 public:
  Reader(std::string_view mangled, text::Text& out) noexcept : mangled_(mangled), out_(out) {}

  bool read() noexcept {
    path(In::expression);
    printing_ = false;
    if (is_upper(next())) path(In::type);  // the crate for which generic code was compiled
    return out_.truncated() || (ok_ && at_ == mangled_.size());
  }

 private:
  struct Identifier {
    std::string_view text;
    bool is_punycode = false;
  };

  // Past the end, or after an error: '\0', which no rule accepts.
  char next() const noexcept { return ok_ && at_ < mangled_.size() ? mangled_[at_] : '\0'; }
  char take() noexcept {
    const char c = next();
    if (c == '\0') ok_ = false;
    ++at_;
    return c;
  }
  bool take_if(char c) noexcept {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  void add(std::string_view text) noexcept {
    if (printing_ && ok_) out_.add(text);
    if (out_.truncated()) ok_ = false;  // no more fits
  }
  void add_number(std::uint64_t value) noexcept {
    if (printing_ && ok_) out_.number(value);
  }

  template <class Rule>
  void nested(Rule&& rule) noexcept {
    if (++rules_ > kMostRules || depth_ == kDeepest) ok_ = false;
    if (!ok_) return;
    ++depth_;
    rule();
    --depth_;
  }

  // Rules up to the 'E' that ends a list, with `separator` between them. Returns how many.
  template <class Rule>
  unsigned list(std::string_view separator, Rule&& rule) noexcept {
    unsigned count = 0;
    while (ok_ && !take_if('E')) {
      if (count++ != 0) add(separator);
      rule();
    }
    return count;
  }

  std::uint64_t base_62() noexcept {
    if (take_if('_')) return 0;
    std::uint64_t value = 0;
    for (char c = take(); ok_ && c != '_'; c = take()) {
      const int digit = is_digit(c)   ? c - '0'
                        : is_lower(c) ? c - 'a' + 10
                        : is_upper(c) ? c - 'A' + 36
                                      : -1;
      if (digit < 0 || value > UINT64_MAX / 62 - 1) ok_ = false;
      value = value * 62 + static_cast<std::uint64_t>(digit);
    }
    return value + 1;
  }

  std::uint64_t optional_base_62(char tag) noexcept { return take_if(tag) ? base_62() + 1 : 0; }

  Identifier identifier() noexcept {
    Identifier found;
    found.is_punycode = take_if('u');
    if (!is_digit(next())) ok_ = false;
    std::size_t length = 0;
    const bool is_empty = take_if('0');  // "00" are two empty ones
    while (!is_empty && is_digit(next()) && length <= mangled_.size())
      length = length * 10 + static_cast<std::size_t>(take() - '0');
    take_if('_');
    if (!ok_ || at_ > mangled_.size() || length > mangled_.size() - at_) {
      ok_ = false;
      return {};
    }
    found.text = mangled_.substr(at_, length);
    at_ += length;
    return found;
  }

  void add(const Identifier& name) noexcept {
    name.is_punycode ? add_punycode(name.text) : add(name.text);
  }

  // Not inlined: its buffer would be on the stack once for each rule.
  [[gnu::noinline]] void add_punycode(std::string_view text) noexcept {
    if (!printing_ || !ok_) return;
    Punycode decoded;
    ok_ = decoded.decode(text);
    for (const char32_t point : decoded) {
      char bytes[4];
      add(text::utf8_of(point, bytes));
    }
  }

  // Reads `rule` at the position that follows, which is before the reference.
  template <class Rule>
  void back_reference(Rule&& rule) noexcept {
    const std::size_t tag = at_ - 1;
    const std::uint64_t to = base_62();
    if (to >= tag) ok_ = false;
    if (!printing_ || !ok_) return;
    const std::size_t after = at_;
    at_ = static_cast<std::size_t>(to);
    nested(rule);
    at_ = after;
  }

  void path(In in) noexcept {
    nested([&] { any_path(in); });
  }
  void any_path(In in) noexcept {
    switch (const char tag = take()) {
      case 'C':
        optional_base_62('s');
        return add(identifier());
      case 'N':
        return nested_path(in);
      case 'M':
      case 'X':
      case 'Y':
        return implementation(tag);
      case 'I':
        path(in);
        add(in == In::expression ? "::<" : "<");
        list(", ", [&] { generic_argument(); });
        return add(">");
      case 'B':
        return back_reference([&] { path(in); });
      default:
        ok_ = false;
    }
  }

  // A name within a path; in namespaces with a capital letter it is the compiler's.
  void nested_path(In in) noexcept {
    const char space = take();
    path(in);
    const std::uint64_t number = optional_base_62('s');
    const Identifier name = identifier();
    if (is_lower(space)) {
      if (!name.text.empty()) add("::");
      return add(name);
    }
    if (!is_upper(space)) ok_ = false;
    add("::{");
    add(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view{&space, 1});
    if (!name.text.empty()) add(":");
    add(name);
    add("#");
    add_number(number);
    add("}");
  }

  // "<Type>", "<Type as Trait>". The path of the `impl` itself is not shown.
  void implementation(char tag) noexcept {
    if (tag != 'Y') {
      optional_base_62('s');
      const bool printed = printing_;
      printing_ = false;
      path(In::type);
      printing_ = printed;
    }
    add("<");
    type();
    if (tag != 'M') {
      add(" as ");
      path(In::type);
    }
    add(">");
  }

  void generic_argument() noexcept {
    if (take_if('L')) return lifetime(base_62());
    if (take_if('K')) return constant();
    type();
  }

  // Index 1 is the innermost one that is bound.
  void lifetime(std::uint64_t index) noexcept {
    if (index > bound_) ok_ = false;
    if (index == 0) return add("'_");
    const std::uint64_t number = bound_ - index;
    if (number < 26) {
      const char name[] = {'\'', static_cast<char>('a' + number)};
      return add(std::string_view{name, sizeof name});
    }
    add("'_");
    add_number(number);
  }

  // Lifetimes bound for the rule: "for<'a, 'b> …".
  template <class Rule>
  void with_bound(Rule&& rule) noexcept {
    const std::uint64_t count = optional_base_62('G');
    if (count > kMostLifetimes - bound_) ok_ = false;
    if (!ok_) return;
    for (std::uint64_t i = 0; i < count; ++i) {
      add(i == 0 ? "for<" : ", ");
      ++bound_;
      lifetime(1);
    }
    if (count != 0) add("> ");
    rule();
    bound_ -= count;
  }

  void type() noexcept {
    nested([&] { any_type(); });
  }
  void any_type() noexcept {
    const char tag = take();
    if (const std::string_view basic = basic_type(tag); !basic.empty()) return add(basic);
    switch (tag) {
      case 'R':
      case 'Q':
        add("&");
        if (take_if('L'))
          if (const std::uint64_t index = base_62(); index != 0) {
            lifetime(index);
            add(" ");
          }
        add(tag == 'Q' ? "mut " : "");
        return type();
      case 'P':
      case 'O':
        add(tag == 'P' ? "*const " : "*mut ");
        return type();
      case 'A':
      case 'S':
        add("[");
        type();
        if (tag == 'A') {
          add("; ");
          constant();
        }
        return add("]");
      case 'T':
        add("(");
        if (list(", ", [&] { type(); }) == 1) add(",");
        return add(")");
      case 'F':
        return with_bound([&] { function_type(); });
      case 'D':
        add("dyn ");
        with_bound([&] { list(" + ", [&] { dynamic_trait(); }); });
        if (!take_if('L')) ok_ = false;
        if (const std::uint64_t index = base_62(); index != 0) {
          add(" + ");
          lifetime(index);
        }
        return;
      case 'B':
        return back_reference([&] { type(); });
      default:
        --at_;
        return path(In::type);
    }
  }

  void function_type() noexcept {
    if (take_if('U')) add("unsafe ");
    if (take_if('K')) {
      add("extern \"");
      take_if('C') ? add("C") : add(identifier());
      add("\" ");
    }
    add("fn(");
    list(", ", [&] { type(); });
    add(")");
    if (take_if('u')) return;
    add(" -> ");
    type();
  }

  // "Iterator<Item = u8>": the arguments of the trait and its associated types in one list.
  void dynamic_trait() noexcept {
    bool is_open = open_path();
    while (take_if('p')) {
      add(is_open ? ", " : "<");
      is_open = true;
      add(identifier());
      add(" = ");
      type();
    }
    if (is_open) add(">");
  }

  // A path without the '>' of its arguments. Returns whether it has arguments.
  bool open_path() noexcept {
    bool is_open = false;
    if (take_if('B')) {
      back_reference([&] { is_open = open_path(); });
    } else if (take_if('I')) {
      path(In::type);
      add("<");
      list(", ", [&] { generic_argument(); });
      is_open = true;
    } else {
      path(In::type);
    }
    return is_open;
  }

  void constant() noexcept {
    nested([&] { any_constant(); });
  }
  void any_constant() noexcept {
    const char tag = take();
    if (tag == 'p') return add("_");
    if (tag == 'B') return back_reference([&] { constant(); });
    constexpr std::string_view kSigned = "aslxni";
    constexpr std::string_view kUnsigned = "htmyojbc";
    const bool is_signed = kSigned.find(tag) != kSigned.npos;
    if (!is_signed && kUnsigned.find(tag) == kUnsigned.npos) ok_ = false;
    if (is_signed && take_if('n')) add("-");
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (char c = take(); ok_ && c != '_'; c = take()) {
      const int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) ok_ = false;
      value = value << 4 | static_cast<std::uint64_t>(digit & 15);
    }
    if (!ok_) return;
    const std::string_view digits = mangled_.substr(begin, at_ - 1 - begin);
    if (tag == 'b') return add(value != 0 ? "true" : "false");
    if (tag == 'c') return character(value);
    if (digits.size() <= 16) return add_number(value);
    add("0x");
    add(digits);
  }

  void character(std::uint64_t value) noexcept {
    char bytes[4];
    const std::string_view text =
        value > 0x10'ffff ? "" : text::utf8_of(static_cast<char32_t>(value), bytes);
    if (text.empty()) ok_ = false;
    add("'");
    add(text);
    add("'");
  }

  const std::string_view mangled_;
  text::Text& out_;
  std::size_t at_ = 0;
  std::uint64_t bound_ = 0;  // lifetimes
  unsigned depth_ = 0;
  unsigned rules_ = 0;
  bool ok_ = true;
  bool printing_ = true;
};

}  // namespace

bool add_rust_v0_name(text::Text& out, std::string_view symbol) noexcept {
  if (!symbol.starts_with("_R")) return false;
  symbol = symbol.substr(2, symbol.find_first_of(".$") - 2);  // without the compiler's suffix
  return Reader{symbol, out}.read();
}

}  // namespace oomrec::names
