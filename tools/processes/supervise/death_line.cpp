#include "tools/processes/supervise/death_line.h"

#include <fmt/format.h>

#include "common/text/text.h"
#include "common/verdict/kinds.h"
#include "common/verdict/verdict.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/largest_holder.h"
#include "tools/sections/resident_memory.h"

namespace oomrec::tools::processes {

std::string end_of_process(std::string_view summary, std::string_view program, std::int64_t pid) {
  const std::string_view clause = summary.substr(0, summary.find("; "));
  if (program.empty() || !clause.starts_with(program))
    return fmt::format("pid {}: {}", pid, printable(std::string{clause}));
  return fmt::format("{} (pid {}){}", printable(std::string{program}), pid,
                     printable(std::string{clause.substr(program.size())}));
}

std::string death_line_of(const bundles::Source& bundle) {
  const verdict::Verdict verdict = bundle.verdict();
  const bool by_memory = verdict::kind_of(verdict.code).death != verdict::MemoryDeath::none;
  if (!by_memory && verdict.code != VerdictCode::killed_externally &&
      verdict.code != VerdictCode::crashed)
    return {};
  const session::Header& header = bundle.recording->header();
  const std::string program = bundle.recording->text(program_of(header));
  std::string line = end_of_process(verdict.summary, text::base_name(program), header.pid);
  if (!by_memory) return line;
  const auto largest = bundles::largest_holder_of(bundle);
  const std::vector<sections::UnheldPart> unheld = sections::unheld_parts(bundle);
  if (!unheld.empty() && (!largest || unheld.front().bytes > largest->bytes))
    line += fmt::format("; largest part: {} of {}", size_text(unheld.front().bytes),
                        unheld.front().name);
  if (largest && !largest->where.empty())
    line += fmt::format("; largest holder: {}{}, {}", largest->estimated ? "about " : "",
                        size_text(largest->bytes), printable(largest->where));
  if (header.heap_note != 0) line += "; " + printable(bundle.recording->text(header.heap_note));
  return line;
}

std::string death_line_of(const recording::Recording& recording, const deaths::Ending& ending) {
  const verdict::Verdict verdict = verdict::verdict_of(recording.view(), Trigger::killed, 0, {},
                                                       ending.outcome_text(), &ending.evidence);
  const session::Header& header = recording.header();
  return end_of_process(verdict.summary, text::base_name(recording.text(program_of(header))),
                        header.pid);
}

}  // namespace oomrec::tools::processes
