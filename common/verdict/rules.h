// Ordered tables of rules: the first that applies gives the verdict. docs/deaths.md prints them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "common/verdict/verdict.h"

namespace oomrec::verdict {

// A row of a table, for readers.
struct RuleText {
  std::string_view name;
  std::string_view when;  // it applies, in words
  VerdictCode code = VerdictCode::unknown;
  bool several = false;  // its explanation finds the code
};

// What is explained first: the event of a bundle.
std::span<const RuleText> rules_of_events() noexcept;

// How a process ended, if that is what the rule `death` or `kill` above has to explain.
std::span<const RuleText> rules_of_deaths() noexcept;

// Of a table that ends with a rule for all that is left.
template <class Rule, std::size_t N, class Facts>
const Rule& first_rule(const Rule (&rules)[N], const Facts& facts) noexcept {
  std::size_t i = 0;
  while (i + 1 < N && !rules[i].applies(facts)) ++i;
  return rules[i];
}

template <class Rule, std::size_t N>
constexpr std::array<RuleText, N> texts_of(const Rule (&rules)[N]) noexcept {
  std::array<RuleText, N> texts;
  for (std::size_t i = 0; i < N; ++i) texts[i] = rules[i].text;
  return texts;
}

}  // namespace oomrec::verdict
