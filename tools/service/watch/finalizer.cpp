#include "tools/service/watch/finalizer.h"

#include <fmt/format.h>

#include <utility>

#include "tools/base/error.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"

namespace oomrec::tools::service {

Finalizer::Finalizer(std::function<void(const std::string&)> report,
                     bundles::OnOomCommand on_oom_exec, Listener& listener)
    : report_(std::move(report)), on_oom_exec_(std::move(on_oom_exec)), listener_(listener) {}

bundles::RecoveryResult Finalizer::finalize_dead_process(bundles::Session session,
                                                         const deaths::DeathObservation& observed,
                                                         bundles::UnknownEnds unknown) const try {
  session.alive = false;
  bundles::RecoveryResult recovered =
      bundles::recover(session, {.observed = observed, .unknown = unknown});
  listener_.on_gone(session.path, &recovered);
  if (!recovered.problem.empty()) remark(recovered.problem);
  if (recovered.has_bundle()) report_bundle(session, recovered);
  return recovered;
} catch (const Error& error) {
  remark(error.what());
  return {};
}

void Finalizer::report_bundle(const bundles::Session& session,
                              const bundles::RecoveryResult& recovered) const {
  const bundles::BundleSummary bundle = bundles::summary_of(recovered.bundle);
  report_(fmt::format("process {} ({}) is gone: {}, {}: {}", session.pid, printable(bundle.program),
                      bundle.outcome, bundle.verdict, printable(recovered.bundle.string())));
  if (!on_oom_exec_.text.empty() && bundles::needs_on_oom_command(recovered.bundle))
    bundles::start_on_oom(on_oom_exec_, recovered.bundle);
}

}  // namespace oomrec::tools::service
