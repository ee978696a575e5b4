// What the rules about large holders share: which one has a large share, its sentence, and the
// frames around its line. Private to this folder.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/findings/advice/advice.h"

namespace oomrec::tools::findings {

inline constexpr double kLargeShare = 0.2;  // of the bytes of all holders: worth a hint

using Words = std::initializer_list<std::string_view>;
using Frames = std::span<const recording::Location>;  // innermost first

bool has_any(std::string_view text, Words words);

bool is_python(const recording::Location& frame);

// Whether a Python line of the frames is in one of these files or functions.
bool runs(Frames frames, Words files, Words functions);

// The frames inside of the subject's line: what it calls. Outside of it: what calls its function.
Frames inside(const SubjectFigures&);
Frames outside(const SubjectFigures&);

// "Images.__getitem__" → "__getitem__": the recorded name is qualified since Python 3.11.
std::string_view unqualified(std::string_view function);

// The largest one that meets the condition and has a large share; nullptr: none.
template <class Condition>
const SubjectFigures* find_large(const AdviceFacts& facts, Condition&& condition) {
  for (const SubjectFigures& held : facts.held) {
    if (facts.share_of(held.bytes) < kLargeShare) break;
    if (condition(held)) return &held;
  }
  return nullptr;
}

// It frees what it allocates, but for less than a twentieth: what is alive may all be in work.
bool is_mostly_freed(const SubjectFigures&);

// "train.py:31 make_batch holds 412 MiB in 60 blocks"
std::string held_text(const SubjectFigures&);
// With its growth: "…, 412 MiB of it in the last 3 min, none of which was freed".
std::string growth_text(const SubjectFigures&);

// A rule about a large holder. Its hint is `evidence` followed by `advice`.
struct HeldRule {
  bool (*matches)(const SubjectFigures&);
  std::string (*evidence)(const SubjectFigures&);
  std::string_view advice;
};

template <const HeldRule& rule>
std::optional<Hint> about_held(const AdviceFacts& facts) {
  const SubjectFigures* const held = find_large(facts, rule.matches);
  if (held == nullptr) return {};
  return Hint{{}, rule.evidence(*held) + std::string{rule.advice}, held->holder};
}

// python_rules.cpp: what Python's libraries keep.
bool is_kept_item(const SubjectFigures&);
std::optional<Hint> kept_items(const AdviceFacts&);
std::optional<Hint> kept_graph(const AdviceFacts&);
bool is_kept_graph(const SubjectFigures&);
std::optional<Hint> cache(const AdviceFacts&);
std::optional<Hint> copied_table(const AdviceFacts&);

}  // namespace oomrec::tools::findings
