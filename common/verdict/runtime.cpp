// The verdict on a process that ended at a memory limit of its runtime.
#include <cstring>

#include "common/text/text.h"
#include "common/verdict/parts.h"
#include "common/verdict/runtimes.h"

namespace oomrec::verdict {
namespace {

using session::RuntimeLimit;

const RuntimeKind* kind_in(const session::View& view) noexcept {
  const RuntimeLimit& limit = view.header().runtime_limit;
  return kind_of(static_cast<session::Runtime>(limit.runtime.load(std::memory_order_acquire)));
}

std::string_view verb(Certainty certainty) noexcept {
  switch (certainty) {
    case Certainty::proven:
      return " reached ";
    case Certainty::likely:
      return " probably reached ";
    default:
      return " possibly reached ";
  }
}

}  // namespace

bool reached_runtime_limit(const session::View& view) noexcept { return kind_in(view) != nullptr; }

void explain_runtime_limit(Verdict& verdict, const session::View& view) noexcept {
  const RuntimeLimit& limit = view.header().runtime_limit;
  const RuntimeKind& kind = *kind_in(view);
  verdict.code = VerdictCode::runtime_limit;
  verdict.certainty = limit.certainty < kCertaintyNames.size()
                          ? static_cast<Certainty>(limit.certainty)
                          : Certainty::possible;
  const std::string_view program = text::base_name(view.string(program_of(view.header())));
  text::Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program).add(verb(verdict.certainty));
  summary.add(kind.limit).add(" (").add(kind.option).add("); no request was refused");
  if (verdict.certainty == Certainty::possible) summary.add(", and nothing excludes it");
  add_line(verdict, [&](text::Text& line) {
    line.add({limit.evidence, strnlen(limit.evidence, sizeof limit.evidence)});
  });
}

}  // namespace oomrec::verdict
