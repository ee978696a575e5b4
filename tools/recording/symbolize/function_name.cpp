#include "tools/recording/symbolize/function_name.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "common/names/library_functions.h"
#include "common/names/names.h"
#include "common/text/frames.h"
#include "common/text/own_code.h"
#include "tools/base/text.h"

namespace oomrec::tools::recording {
namespace {

constexpr std::size_t kDeepest = 8;  // deeper template arguments are cut first, all at once

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Walks over a demangled name. Brackets of operators and of "(anonymous namespace)" are part of a
// word; all others nest.
class Walk {
 public:
  explicit Walk(std::string_view name) : name_(name) {}

  bool at_end() const { return at_ >= name_.size(); }
  std::size_t at() const { return at_; }
  std::size_t depth() const { return depth_; }
  char next() const { return name_[at_]; }
  std::string_view rest() const { return name_.substr(at_); }

  // How many characters belong together here; more than 1: they are words.
  std::size_t token() const {
    constexpr std::string_view kAnonymous = "(anonymous namespace)";
    constexpr std::string_view kOperator = "operator";
    if (rest().starts_with(kAnonymous)) return kAnonymous.size();
    if (rest().starts_with("->")) return 2;
    const bool is_operator =
        rest().starts_with(kOperator) && (at_ == 0 || !is_word(name_[at_ - 1]));
    if (!is_operator) return 1;
    const std::string_view symbol = rest().substr(kOperator.size());
    if (symbol.starts_with("()") || symbol.starts_with("[]")) return kOperator.size() + 2;
    const auto end = symbol.find_first_not_of("<>=-*");
    return kOperator.size() + std::min<std::size_t>(end == symbol.npos ? symbol.size() : end, 3);
  }
  bool opens() const {
    return token() == 1 && std::string_view{"<({["}.find(next()) != std::string_view::npos;
  }
  bool closes() const {
    return token() == 1 && std::string_view{">)}]"}.find(next()) != std::string_view::npos;
  }

  void step() {
    const std::size_t bytes = token();
    if (opens()) {
      ++depth_;
    } else if (closes() && depth_ != 0) {
      --depth_;
    }
    at_ += bytes;
  }

 private:
  std::string_view name_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

// "void std::vector<int>::push_back(int) const" → "std::vector<int>::push_back" and
// "(int) const".
struct Parts {
  std::string_view name;
  std::string_view parameters;  // and what follows them; empty: none
};

Parts parts_of(std::string_view full) {
  std::size_t begin = 0;
  for (Walk walk{full}; !walk.at_end(); walk.step()) {
    if (walk.depth() != 0) continue;
    // "operator new", "operator std::string": the blank is part of the name.
    if (walk.token() > 1 && walk.rest().starts_with("operator")) {
      const auto parameters = full.find('(', walk.at() + walk.token());
      return {full.substr(begin, parameters - begin),
              parameters == full.npos ? "" : full.substr(parameters)};
    }
    if (walk.next() == ' ') begin = walk.at() + 1;
    const bool is_type = full.substr(0, walk.at()).ends_with("decltype ");
    if (walk.opens() && walk.next() == '(' && !is_type && walk.at() > begin)
      return {full.substr(begin, walk.at() - begin), full.substr(walk.at())};
  }
  return {full.substr(begin), ""};
}

// The name with "…" for template arguments at `depth`, but of the first ones as much as fits in
// `more` columns.
std::string with_cut_arguments(std::string_view name, std::size_t depth, std::size_t more) {
  std::string text;
  for (Walk walk{name}; !walk.at_end();) {
    const bool is_cut = walk.opens() && walk.next() == '<' && walk.depth() == depth;
    const std::size_t begin = walk.at();
    walk.step();
    text += name.substr(begin, walk.at() - begin);
    if (!is_cut) continue;
    const std::size_t first = walk.at();
    while (!walk.at_end() && !(walk.closes() && walk.depth() == depth + 1)) walk.step();
    const std::string arguments = clip(name.substr(first, walk.at() - first), 1 + more);
    if (!arguments.empty()) more -= width(arguments) - 1;
    text += arguments;
  }
  return text;
}

// "…::method", of Cython "….method": as many inner scopes as fit.
std::string with_cut_scopes(std::string_view name, std::size_t columns) {
  const std::size_t all = width(name);
  if (all <= columns) return std::string{name};
  std::size_t before = 0;
  for (Walk walk{name}; !walk.at_end();) {
    const bool is_scope = walk.rest().starts_with("::") || walk.next() == '.';
    if (walk.depth() == 0 && is_scope && all - before + 1 <= columns)
      return "…" + std::string{walk.rest()};
    const std::size_t begin = walk.at();
    walk.step();
    before += width(name.substr(begin, walk.at() - begin));
  }
  return clip(name, columns);
}

// What compilers append to the name of a function that they split or copy.
std::string_view without_clone(std::string_view name) {
  constexpr std::array<std::string_view, 8> kClones = {" [clone ",    ".isra.",     ".part.",
                                                       ".constprop.", ".cold",      ".lto_priv.",
                                                       ".llvm.",      ".localalias"};
  for (const std::string_view clone : kClones) name = name.substr(0, name.find(clone));
  return name;
}

// Rust's "<train::Rows<u32> as train::Grow>::push" → "train::Rows<u32>::push".
std::string without_trait(std::string_view name) {
  if (!name.starts_with('<')) return std::string{name};
  Walk walk{name};
  std::size_t end_of_type = 0;
  do {
    if (walk.depth() == 1 && end_of_type == 0 && walk.rest().starts_with(" as "))
      end_of_type = walk.at();
    walk.step();
  } while (!walk.at_end() && walk.depth() != 0);
  if (end_of_type == 0) end_of_type = walk.at() - 1;
  return std::string{name.substr(1, end_of_type - 1)} + std::string{walk.rest()};
}

// Go's "main.(*Cache).Put" → "main.Cache.Put".
std::string without_receiver(std::string_view name) {
  const std::size_t begin = name.find(".(*");
  const std::size_t end = name.find(").", begin);
  if (end == name.npos) return std::string{name};
  return fmt::format("{}.{}{}", name.substr(0, begin), name.substr(begin + 3, end - begin - 3),
                     name.substr(end + 1));
}

// Without what is in brackets.
std::string without_brackets(std::string_view name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string text;
  for (Walk walk{name}; !walk.at_end();) {
    const bool is_kept = walk.depth() == 0 && !walk.opens() && !walk.rest().starts_with(kAnonymous);
    const std::size_t begin = walk.at();
    walk.step();
    if (is_kept) text += name.substr(begin, walk.at() - begin);
  }
  return text;
}

// "::run::::" → "run": scopes that had no name.
std::string without_empty_scopes(std::string_view name) {
  std::string text;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find("::", at), name.size());
    if (end != at) text += (text.empty() ? "" : "::") + std::string{name.substr(at, end - at)};
    at = end + 2;
  }
  return text;
}

// Where GCC's and Clang's names have a lambda, which debug information calls operator() alone;
// npos: it is none.
std::size_t lambda_in(std::string_view name) {
  constexpr std::array<std::string_view, 3> kLambdas = {"::{lambda(", "::$_", "::'lambda"};
  for (Walk walk{name}; !walk.at_end(); walk.step())
    if (walk.depth() == 0 && walk.at() != 0 &&
        std::ranges::any_of(
            kLambdas, [&](std::string_view lambda) { return walk.rest().starts_with(lambda); }))
      return walk.at();
  return name.npos;
}

}  // namespace

std::string plain_name(std::string_view name) {
  if (const std::size_t at = lambda_in(name); at != name.npos)
    return plain_name(name.substr(0, at)) + "::operator()";
  const std::string named = without_receiver(without_clone(name));
  const std::string typed = without_trait(parts_of(named).name);
  std::string plain = without_empty_scopes(without_brackets(typed));
  return plain.empty() ? std::string{name} : plain;
}

std::string demangled(const char* symbol) {
  std::array<char, 4096> buffer;
  if (const auto found = names::cython_or_rust_name(symbol, buffer); !found.empty())
    return std::string{found};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free};
  return status == 0 && text != nullptr ? text.get() : symbol;
}

std::string shortened_name(std::string_view name, std::size_t columns) {
  if (width(name) <= columns) return std::string{name};
  const Parts parts = parts_of(name);
  const std::size_t named = width(parts.name);
  if (named + width(parts.parameters) <= columns)
    return std::string{parts.name} + std::string{parts.parameters};
  const std::string_view end = parts.parameters.empty()             ? ""
                               : parts.parameters.starts_with("()") ? "()"
                                                                    : "(…)";
  const std::size_t available = columns > width(end) ? columns - width(end) : 1;
  std::size_t depth = kDeepest;
  std::string cut{parts.name};
  for (std::size_t cut_columns = named; cut_columns > available; --depth) {
    cut = with_cut_arguments(parts.name, depth, 0);
    cut_columns = width(cut);
    if (cut_columns <= available)
      cut = with_cut_arguments(parts.name, depth, available - cut_columns);
    if (depth == 0) break;
  }
  return with_cut_scopes(cut, available) + std::string{end};
}

bool is_own_function(const Location& location, const Locations& locations) {
  if (location.kind != Location::Kind::native || location.interpreter || location.function.empty())
    return false;
  const std::string& module = locations.module_path(location);
  return !module.empty() && location.function != "_start" && !text::is_plumbing(module) &&
         !text::is_installed(module) && !is_library_function(location);
}

bool is_import_machinery(const Location& location) {
  if (location.kind == Location::Kind::python) return text::is_import_machinery(location.file);
  constexpr std::array<std::string_view, 4> kNames = {"PyImport_", "_PyImport_", "import_",
                                                      "builtin___import__"};
  return location.interpreter && std::ranges::any_of(kNames, [&](std::string_view name) {
           return location.function.starts_with(name);
         });
}

bool is_library_function(const Location& location) {
  // As debug information has Rust's own library.
  constexpr std::array<std::string_view, 4> kFiles = {"library/core/", "library/alloc/",
                                                      "library/std/", "/rustc/"};
  return location.kind == Location::Kind::native &&
         (names::is_library_function(parts_of(location.function).name) ||
          std::ranges::any_of(kFiles, [&](std::string_view directory) {
            return location.file.starts_with(directory);
          }));
}

}  // namespace oomrec::tools::recording
