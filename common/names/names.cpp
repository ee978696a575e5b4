// C++ names: the Itanium C++ ABI, 5.1 "External names": <encoding> as far as its <name>. And which
// kind of name a symbol is.
#include "common/names/names.h"

#include "common/text/text.h"

namespace oomrec::names {
namespace {

class Name {
 public:
  Name(std::string_view symbol, text::Text& out) noexcept : rest_(symbol), out_(out) {}

  // Whether everything before the parameters was understood.
  bool read() noexcept {
    if (!take("N")) return read_part() && (!at('I') || skip_arguments());
    while (at('r') || at('V') || at('K') || at('R') || at('O')) rest_.remove_prefix(1);
    while (!take("E")) {
      if (!(at('I') ? skip_arguments() : read_part())) return false;
    }
    return !last_.empty();
  }

 private:
  bool at(char c) const noexcept { return rest_.starts_with(c); }
  bool take(std::string_view some) noexcept {
    if (!rest_.starts_with(some)) return false;
    rest_.remove_prefix(some.size());
    return true;
  }

  // <source-name>: the length, then the name. Empty: none here.
  std::string_view take_source_name() noexcept {
    const std::size_t length = take_length(rest_);
    if (length > rest_.size()) return {};
    const std::string_view name = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return name;
  }

  void add(std::string_view prefix, std::string_view name) noexcept {
    out_.add(out_.view().empty() ? "" : "::").add(prefix).add(name);
    last_ = name;
  }

  bool read_part() noexcept {
    struct Known {
      std::string_view mangled;
      std::string_view name;
    };
    constexpr Known kKnown[] = {{"Sa", "std::allocator"}, {"Sb", "std::basic_string"},
                                {"Ss", "std::string"},    {"Si", "std::istream"},
                                {"So", "std::ostream"},   {"Sd", "std::iostream"},
                                {"cl", "operator()"},     {"ix", "operator[]"}};
    if (take("St")) {
      add("", "std");
      return !rest_.empty() && is_digit(rest_[0]) ? read_part() : true;
    }
    for (const Known& known : kKnown)
      if (take(known.mangled)) return add("", known.name), true;
    for (const std::string_view constructor : {"C1", "C2", "C3"})
      if (!last_.empty() && take(constructor)) return add("", last_), true;
    for (const std::string_view destructor : {"D0", "D1", "D2"})
      if (!last_.empty() && take(destructor)) return add("~", last_), true;
    take("L");  // internal linkage
    const std::string_view name = take_source_name();
    if (name.empty()) return false;
    add("", name.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : name);
    while (take("B"))  // an ABI tag
      if (take_source_name().empty()) return false;
    return true;
  }

  // Template arguments, up to their 'E'.
  bool skip_arguments() noexcept {
    unsigned depth = 0;
    do {
      if (rest_.empty() || at('Z')) return false;
      if (is_digit(rest_[0])) {
        if (take_source_name().empty()) return false;
      } else if (at('L')) {  // a literal: type and value
        const auto end = rest_.find('E');
        if (end == std::string_view::npos || rest_.substr(1, 1) == "_") return false;
        rest_.remove_prefix(end + 1);
      } else if (at('S')) {  // a substitution, of two letters or up to '_'
        const bool two = rest_.size() > 1 && rest_[1] >= 'a' && rest_[1] <= 'z';
        const auto end = two ? 1 : rest_.find('_');
        if (end == std::string_view::npos) return false;
        rest_.remove_prefix(end + 1);
      } else {
        if (at('I') || at('N') || at('J') || at('X') || at('F')) ++depth;
        if (at('E')) --depth;
        rest_.remove_prefix(1);
      }
    } while (depth != 0);
    return true;
  }

  std::string_view rest_;
  std::string_view last_;  // part
  text::Text& out_;
};

}  // namespace

std::string_view short_cxx_name(std::string_view symbol, std::span<char> buffer) noexcept {
  if (!symbol.starts_with("_Z")) return symbol;
  text::Text out{buffer.data(), buffer.size()};
  return Name{symbol.substr(2), out}.read() ? out.view() : symbol;
}

std::string_view cython_or_rust_name(std::string_view symbol, std::span<char> buffer) noexcept {
  text::Text out{buffer.data(), buffer.size()};
  for (const auto add : {add_cython_name, add_rust_v0_name, add_rust_legacy_name}) {
    if (add(out, symbol)) return out.view();
    out.clear();
  }
  return {};
}

std::string_view short_name(std::string_view symbol, std::span<char> buffer) noexcept {
  const std::string_view found = cython_or_rust_name(symbol, buffer);
  return found.empty() ? short_cxx_name(symbol, buffer) : found;
}

}  // namespace oomrec::names
