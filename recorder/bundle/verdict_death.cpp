// A process that is gone, as far as its session and those who looked after it know.
#include "recorder/bundle/text.h"
#include "recorder/bundle/verdict_parts.h"

namespace oomrec::bundle {
namespace {

using session::Failure;

bool was_refused(const session::View& view) noexcept {
  Failure failure{};
  for (std::uint64_t i = 1; i < view.count(session::TableId::failures); ++i)
    if (view.read(session::TableId::failures, i, failure) &&
        (failure.flags & session::kFailureProbe) == 0)
      return true;
  return false;
}

// " was killed by SIGKILL"
void add_death(Text& summary, std::string_view outcome) noexcept {
  constexpr struct {
    std::string_view number;
    std::string_view name;
  } kSignals[] = {{"1", "SIGHUP"},   {"2", "SIGINT"},   {"3", "SIGQUIT"},  {"4", "SIGILL"},
                  {"5", "SIGTRAP"},  {"6", "SIGABRT"},  {"7", "SIGBUS"},   {"8", "SIGFPE"},
                  {"9", "SIGKILL"},  {"10", "SIGUSR1"}, {"11", "SIGSEGV"}, {"12", "SIGUSR2"},
                  {"13", "SIGPIPE"}, {"14", "SIGALRM"}, {"15", "SIGTERM"}, {"24", "SIGXCPU"},
                  {"25", "SIGXFSZ"}, {"31", "SIGSYS"}};
  constexpr std::string_view kSignal = "signal ";
  constexpr std::string_view kExited = "exited ";
  if (outcome.starts_with(kSignal)) {
    summary.add(" was killed by ");
    for (const auto& signal : kSignals)
      if (outcome.substr(kSignal.size()) == signal.number) outcome = signal.name;
    summary.add(outcome);
  } else if (outcome.starts_with(kExited)) {
    summary.add(" ended with exit status ").add(outcome.substr(kExited.size()));
  } else if (outcome == name_of(OutcomeKind::recovered)) {
    summary.add(" ended with exit status 0");
  } else if (outcome == name_of(OutcomeKind::oom_killed)) {
    summary.add(" was killed by the kernel, which had no memory left");
  } else {
    summary.add(" is gone, nobody saw how");
  }
}

}  // namespace

void explain_death(Verdict& verdict, const session::View& view, const session::Death&,
                   std::string_view outcome) noexcept {
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const std::int64_t live = view.totals(static_cast<Space>(i)).live_bytes;
    if (live > 0) held = add(held, static_cast<std::uint64_t>(live));
  }
  const std::string_view program = base_name(view.string(view.header().executable));
  Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program);
  add_death(summary, outcome);
  summary.add("; it held ").size(held);
  if (!was_refused(view)) summary.add("; no refused request is on record");
}

}  // namespace oomrec::bundle
