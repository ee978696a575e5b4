#include "tools/service/watch/pressure_bundles.h"

#include <fmt/format.h>

#include <compare>
#include <utility>

#include "common/limits/stalls.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/store/writing.h"
#include "tools/deaths/current_health.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenBundles = 5min;  // of the same process
constexpr auto kMostLook = 200ms;       // at the pages of a process that waits for memory
constexpr auto kBetweenSearches = 10s;  // for the process that waits

// The kernel has just reported the machine's pressure: its averages may still be low.
constexpr limit::MachinePressure kReported{10'000, 0};

// How much a process waits for memory; the default: it does not.
struct Wait {
  bool of_its_own = false;  // its own cgroup says so, too
  std::uint64_t faults = 0;

  auto operator<=>(const Wait&) const = default;
};

Wait wait_of(const session::Stalls& stalls) {
  if (!limit::is_stalled(stalls, kReported)) return {};
  return {limit::is_stalled(stalls, {}), limit::faults_per_second(stalls)};
}

RecordedProcess* longest_waiting(RecordedProcesses& processes) {
  Wait most;
  RecordedProcess* found = nullptr;
  for (auto& [path, process] : processes) {
    const Wait wait = wait_of(process.levels.stalls());
    if (wait <= most) continue;
    most = wait;
    found = &process;
  }
  return found;
}

bundles::WriteResult write_bundle_of(const RecordedProcess& process) {
  recording::Recording recording{process.session.path};
  recording.enter_look_within(process.session.pid, kMostLook);
  const auto health = deaths::current_health(recording.view());
  bundle::Cause cause;
  cause.trigger = Trigger::pressure;
  cause.health = health.get();
  return bundles::write_bundle(recording, cause, recording.text(recording.header().dump_directory));
}

bool is_within(PressureBundles::Clock::time_point then, PressureBundles::Clock::time_point now,
               std::chrono::seconds seconds) {
  return then != PressureBundles::Clock::time_point{} && now - then < seconds;
}

}  // namespace

PressureBundles::PressureBundles(std::function<void(const std::string&)> report, Listener& listener)
    : report_(std::move(report)), listener_(listener) {}

void PressureBundles::on_pressure(RecordedProcesses& processes) {
  const auto now = Clock::now();
  if (is_within(last_search_, now, kBetweenSearches)) return;
  last_search_ = now;
  RecordedProcess* const found = longest_waiting(processes);
  if (found == nullptr) return;
  RecordedProcess& process = *found;
  if (is_within(process.last_pressure_bundle, now, kBetweenBundles))
    return listener_.on_memory_pressure(process.session.path, {});
  process.last_pressure_bundle = now;
  const bundles::WriteResult written = write_bundle_of(process);
  if (written.bundle.empty())
    remark(written.problem);
  else
    report_(fmt::format("process {}: {}: {}", process.session.pid, written.summary,
                        printable(written.bundle.string())));
  listener_.on_memory_pressure(process.session.path, written.bundle);
}

}  // namespace oomrec::tools::service
