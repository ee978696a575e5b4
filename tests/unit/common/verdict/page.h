// The page of verdicts, tests/golden/verdicts.txt, which tests/integration/test_verdicts.py makes
// of the rows that the tests of this folder show.
#pragma once

#include <cstdlib>
#include <fstream>

#include "common/verdict/verdict.h"

namespace oomrec::verdict {

// Adds a verdict to the page, under the facts that lead to it: no other test repeats its words.
// Without the variable, by which the page's test names a file, it does nothing.
inline void show(const char* facts, const Verdict& verdict) {
  const char* const path = std::getenv("OOMREC_TEST_VERDICTS");
  if (path == nullptr) return;
  char words[80] = {};
  text::Text limit{words};
  if (verdict.limit.kind != LimitKind::none) {
    const bool counts = is_count_limit(verdict.limit.kind);
    const auto add = [&](std::uint64_t n) { counts ? limit.count(n) : limit.size(n); };
    limit.add(name_of(verdict.limit.kind)).add(" ");
    add(verdict.limit.bytes);
    limit.add(", used ");
    add(verdict.limit.used_bytes);
  }
  std::ofstream row{path, std::ios::app};
  row << facts << '\t' << name_of(verdict.code) << '\t' << name_of(verdict.certainty) << '\t'
      << words << '\t' << verdict.summary;
  for (unsigned i = 0; i < verdict.evidence_count; ++i) row << '\t' << verdict.evidence[i];
  row << '\n';
}

}  // namespace oomrec::verdict
