#include "tools/deaths/ending.h"

#include <sys/wait.h>

#include <algorithm>
#include <string_view>

#include "common/bundle/bundle.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/proc.h"
#include "tools/deaths/evidence.h"

namespace oomrec::tools::deaths {
namespace {

Ending exited(int status) {
  return status == 0 ? Ending{OutcomeKind::recovered, 0} : Ending{OutcomeKind::exited, status};
}

Ending observed_ending(const session::Header& header, const DeathObservation& observed) {
  if (observed.wait_status) {
    const int status = *observed.wait_status;
    return WIFSIGNALED(status) ? Ending{OutcomeKind::signal, WTERMSIG(status)}
                               : exited(WEXITSTATUS(status));
  }
  const auto state = static_cast<session::State>(header.state.load());
  const auto crash = static_cast<std::int32_t>(header.crash.signal.load());
  if (state == session::State::running && crash != 0) return {OutcomeKind::signal, crash};
  return state == session::State::exited ? exited(header.exit_status) : Ending{};
}

}  // namespace

std::string Ending::outcome_text() const {
  char buffer[32];
  return std::string{bundle::outcome_text(outcome, value, buffer)};
}

std::optional<int> status_of_zombie(pid_t pid, std::uint64_t start_ticks) {
  const std::string text = process_file(pid, "stat", system::g_roots.proc);
  const std::string_view status = system::stat_field(text, 52);
  if (status.empty() || system::stat_field(text, 3) != "Z" ||
      system::number_in(system::stat_field(text, 22)) != start_ticks)
    return std::nullopt;
  return static_cast<int>(system::number_in(status));
}

Ending ending_of(const session::View& view, const DeathObservation& observed) {
  const session::Header& header = view.header();
  Ending ending = observed_ending(header, observed);
  const bool by_itself =
      static_cast<session::State>(header.state.load()) != session::State::running ||
      (observed.wait_status && WIFEXITED(*observed.wait_status));
  // Who ends a process by SIGTERM may let it exit.
  if (by_itself && header.told_realtime_ns == 0) return ending;
  ending.killed = true;
  ending.evidence = end_evidence_of(view, observed);
  if ((ending.death().flags & session::kDeathFaultLogged) != 0) {
    ending.outcome = OutcomeKind::signal;
    ending.value = ending.death().wait_status;
  }
  ending.verdict =
      verdict::verdict_of(view, Trigger::killed, 0, {}, ending.outcome_text(), &ending.evidence)
          .code;
  if (verdict::is_kernel_kill(ending.verdict)) {
    ending.outcome = OutcomeKind::oom_killed;
    ending.value = 0;
  }
  return ending;
}

bool follows(const session::View& view, const Ending& ending, std::uint64_t monotonic_ns,
             std::uint64_t within_ns) {
  const session::Header& header = view.header();
  const bool known_when =
      (ending.death().flags & session::kDeathWaited) != 0 || ending.death().kernel_line_kind != 0;
  const std::uint64_t realtime_ns =
      header.start_realtime_ns + (monotonic_ns - header.start_monotonic_ns);
  if (known_when) return ending.death().realtime_ns < realtime_ns + within_ns;
  const std::uint64_t last_sign = std::max(header.last_tick_ns.load(), header.crash.time_ns);
  return last_sign < monotonic_ns + within_ns;
}

}  // namespace oomrec::tools::deaths
