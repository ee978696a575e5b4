// Cython's Symtab.py: a prefix for the kind of function, the scopes with their lengths, for some
// kinds a counter, and the name. A counter may look like the length of a scope.
#include "common/names/names.h"

#include <algorithm>

namespace oomrec::names {
namespace {

// Whether a counter may stand between the scopes and the name. A Python wrapper always has one,
// because the function that it wraps comes first.
enum class Counter : std::uint8_t { never, optional, always };

struct Kind {
  std::string_view prefix;
  Counter counter;
};
constexpr Kind kKinds[] = {
    {"__pyx_lambda_funcdef_", Counter::never},  // before the others: it may follow a wrapper's
    {"__pyx_pw_", Counter::always},             // wrapper that Python calls
    {"__pyx_pf_", Counter::optional},           // body of a Python function
    {"__pyx_gb_", Counter::optional},           // body of a generator or coroutine
    {"__pyx_f_", Counter::never},               // C function
    {"__pyx_getprop_", Counter::never},
    {"__pyx_setprop_", Counter::never},
};

std::string_view without(std::string_view text, std::string_view from) noexcept {
  return text.substr(0, text.find(from));
}

std::string_view without_digits(std::string_view text) noexcept {
  return text.substr(std::min(text.find_first_not_of("0123456789"), text.size()));
}

// "__pyx_pw_…" of _ZL44__pyx_pw_…P7_object: Cython can generate C++, too.
std::string_view without_cxx(std::string_view symbol) noexcept {
  std::string_view rest = symbol;
  for (const std::string_view prefix : {"_ZL", "_Z"}) {
    if (!rest.starts_with(prefix)) continue;
    rest.remove_prefix(prefix.size());
    const std::size_t length = take_length(rest);
    return length <= rest.size() ? rest.substr(0, length) : symbol;
  }
  return symbol;
}

// "3foo_…": the scope and the rest. `scope` is empty if the text begins otherwise.
struct Scope {
  std::string_view scope, rest;
};
Scope scope_of(std::string_view text) noexcept {
  std::string_view rest = text;
  const std::size_t length = take_length(rest);
  // The length counts the dots that "_dot_" stands for.
  constexpr std::string_view kDot = "_dot_";
  std::size_t bytes = 0;
  for (std::size_t counted = 0; counted < length; ++counted) {
    if (bytes >= rest.size()) return {};
    bytes += rest.substr(bytes).starts_with(kDot) ? kDot.size() : 1;
  }
  if (length == 0 || bytes + 1 >= rest.size() || rest[bytes] != '_') return {};
  return {rest.substr(0, bytes), rest.substr(bytes + 1)};
}

// Whether "2is_…" is the scope "is" rather than the function "is_…" with the counter 2. Only
// lambdas are wrapped without a counter. Where it is optional both are possible, and scopes are
// more common.
bool is_scope(const Scope& found, Counter counter) noexcept {
  if (found.scope.empty()) return false;
  return counter != Counter::always || is_digit(found.rest[0]) || found.rest.starts_with("lambda");
}

void add_scope(text::Text& out, std::string_view scope) noexcept {
  constexpr std::string_view kDot = "_dot_";
  for (auto dot = scope.find(kDot); dot != scope.npos; dot = scope.find(kDot)) {
    out.add(scope.substr(0, dot)).add('.');
    scope.remove_prefix(dot + kDot.size());
  }
  out.add(scope).add('.');
}

// "__pyx_fuse_0_1name": a function for one combination of fused types.
std::string_view without_fused_types(std::string_view name) noexcept {
  constexpr std::string_view kFused = "__pyx_fuse_";
  if (!name.starts_with(kFused)) return name;
  name = without_digits(name.substr(kFused.size()));
  while (name.size() > 1 && name[0] == '_' && is_digit(name[1]))
    name = without_digits(name.substr(1));
  return name;
}

// The scopes and the name.
bool add_qualified(text::Text& out, std::string_view rest, Counter counter) noexcept {
  bool has_scope = false;
  for (Scope found = scope_of(rest); !has_scope || is_scope(found, counter);
       found = scope_of(rest)) {
    if (found.scope.empty()) return false;
    add_scope(out, found.scope);
    has_scope = true;
    rest = found.rest;
  }
  if (counter == Counter::never && is_digit(rest[0])) return false;
  const std::string_view name = without_fused_types(without_digits(rest));
  out.add(without(name, "__pyx_wrap_"));
  return !name.empty();
}

// "__pyx_tp_new_3mod_Model": the slot of a type.
bool add_slot(text::Text& out, std::string_view symbol) noexcept {
  static constexpr std::string_view kSlots[] = {"__pyx_tp_", "__pyx_sq_", "__pyx_mp_",
                                                "__pyx_nb_", "__pyx_am_", "__pyx_bf_"};
  const bool is_slot = std::any_of(std::begin(kSlots), std::end(kSlots),
                                   [&](std::string_view slot) { return symbol.starts_with(slot); });
  const auto digit = symbol.find_first_of("0123456789");
  if (!is_slot || digit == symbol.npos || symbol[digit - 1] != '_') return false;
  constexpr std::size_t kPrefix = 6;  // "__pyx_"
  const std::string_view slot = symbol.substr(kPrefix, digit - 1 - kPrefix);
  if (slot.find("__") != slot.npos) return false;  // digits of a utility's own name
  if (!add_qualified(out, symbol.substr(digit), Counter::never)) return false;
  out.add('.').add(slot);
  return true;
}

}  // namespace

bool add_cython_name(text::Text& out, std::string_view symbol) noexcept {
  symbol = without_cxx(symbol);
  if (!symbol.starts_with("__pyx_")) return false;
  symbol = without(symbol, ".");  // of the compiler: ".constprop.0"
  constexpr std::string_view kModule = "__pyx_pymod_exec_";
  if (symbol.starts_with(kModule) && symbol.size() > kModule.size()) {
    out.add(symbol.substr(kModule.size())).add(".<module>");  // as Python calls it
    return true;
  }
  // Functions for fused types, special methods and memory views have a prefix before the kind's.
  for (const Kind& kind : kKinds) {
    const auto at = symbol.find(kind.prefix);
    if (at != symbol.npos)
      return add_qualified(out, symbol.substr(at + kind.prefix.size()), kind.counter);
  }
  return add_slot(out, symbol);
}

}  // namespace oomrec::names
