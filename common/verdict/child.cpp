// A process that ended because a worker had died for lack of memory. The worker's own bundle has
// the full story; the parent's has a summary.
#include <cstring>

#include "common/text/text.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

using session::ChildDeath;
using session::View;

template <std::size_t N>
std::string_view text_in(const char (&field)[N]) noexcept {
  return {field, strnlen(field, N)};
}

void add_holding(text::Text& text, const ChildDeath& child) noexcept {
  text.add(" held ").size(child.held_bytes);
  if (const std::string_view location = text_in(child.where); !location.empty())
    text.add(", ").size(child.largest_bytes).add(" of it from ").add(location);
}

// From the wait for the worker to the end of its parent; 0: unknown.
std::uint64_t time_between(const View& view, const ChildDeath& child, const End& end) noexcept {
  const session::Header& header = view.header();
  std::uint64_t waited_ns = 0;
  for (const session::EndedChild& ended : header.ended)
    if (ended.pid == child.pid) waited_ns = ended.time_ns.load(std::memory_order_relaxed);
  const bool seen = (end.death.flags & session::kDeathWaited) != 0;
  const std::uint64_t end_ns =
      seen ? header.start_monotonic_ns + (end.death.realtime_ns - header.start_realtime_ns)
           : header.last_tick_ns.load(std::memory_order_relaxed);
  return waited_ns != 0 && end_ns > waited_ns ? end_ns - waited_ns : 0;
}

}  // namespace

void explain_child(Verdict& verdict, const View& view, const ChildDeath& child, const End& end,
                   std::string_view outcome) noexcept {
  verdict.code = VerdictCode::child_killed;
  verdict.certainty = Certainty::likely;  // the parent's end follows the worker's
  const std::string_view program = text::base_name(view.string(program_of(view.header())));
  text::Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program);
  add_end(summary, view, end, outcome);
  summary.add(" after its worker ").signed_number(child.pid).add(' ');
  summary.add(kind_of(static_cast<VerdictCode>(child.verdict)).worker);
  summary.add("; it");
  add_holding(summary, child);

  add_line(verdict, [&](text::Text& line) {
    line.add("worker ").signed_number(child.pid).add(": ").add(text_in(child.summary));
  });
  add_line(verdict, [&](text::Text& line) {
    line.add("the worker");
    add_holding(line, child);
  });
  add_line(verdict, [&](text::Text& line) {
    line.add("its parent waited for it: ");
    add_signal(line, child.wait_status & 0x7f);  // as WTERMSIG
    if (const std::uint64_t ns = time_between(view, child, end); ns != 0) {
      line.add(", ");
      add_time(line, ns);
      line.add(" before its own end");
    }
  });
  if (const std::string_view bundle = text_in(child.bundle); !bundle.empty())
    add_line(verdict, [&](text::Text& line) { line.add("the worker's own bundle: ").add(bundle); });
}

}  // namespace oomrec::verdict
