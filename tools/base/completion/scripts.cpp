#include "tools/base/completion/scripts.h"

#include <algorithm>

namespace oomrec::tools {
namespace {

struct Meaning {
  std::string_view type;  // as in --help, up to its first bracket
  Values values;
};
constexpr Meaning kMeanings[] = {
    {"DIR", Values::directories}, {"FILE", Values::files},      {"BUNDLE", Values::bundles},
    {"PID", Values::processes},   {"PROGRAM", Values::program}, {"SESSION", Values::bundles},
};

Values values_of(const ArgumentRow& row, std::string_view type, Values otherwise) {
  if (!row.words.empty()) return Values::words;
  type = type.substr(0, type.find_first_of("[|"));
  const auto* const meaning = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                           [&](const Meaning& one) { return one.type == type; });
  return meaning != std::end(kMeanings) ? meaning->values : otherwise;
}

}  // namespace

Values values_of_option(const ArgumentRow& row) { return values_of(row, row.type, Values::none); }

// A positional without a known type names a bundle.
Values values_of_positional(const ArgumentTable& table, std::size_t number) {
  const std::vector<ArgumentRow>& rows = table.positionals;
  if (rows.empty()) return Values::none;
  const ArgumentRow& row = rows[std::min(number, rows.size() - 1)];
  if (table.rest && number + 1 >= rows.size()) return Values::program;
  return values_of(row, row.name, Values::bundles);
}

}  // namespace oomrec::tools
