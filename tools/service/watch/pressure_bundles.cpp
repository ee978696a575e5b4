#include "tools/service/watch/pressure_bundles.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/store/writing.h"
#include "tools/deaths/current_health.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenBundles = 5min;  // of the same process
constexpr auto kBetweenSearches = 10s;  // for the largest process

struct Candidate {
  RecordedProcess* process;
  std::unique_ptr<recording::Recording> recording;
  std::unique_ptr<session::Health> health;
};

std::optional<Candidate> largest_of(RecordedProcesses& processes) {
  std::optional<Candidate> largest;
  for (auto& [path, process] : processes) {
    auto recording = std::make_unique<recording::Recording>(path);
    auto health = process.same_pid_namespace() ? deaths::current_health(recording->view())
                                               : deaths::recorded_health(recording->view());
    if (!largest || health->rss_bytes > largest->health->rss_bytes)
      largest = Candidate{&process, std::move(recording), std::move(health)};
  }
  return largest;
}

bundles::WriteResult write_bundle_of(const Candidate& candidate) {
  bundle::Cause cause;
  cause.trigger = Trigger::pressure;
  cause.health = candidate.health.get();
  return bundles::write_bundle(
      *candidate.recording, cause,
      candidate.recording->text(candidate.recording->header().dump_directory));
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
  const std::optional<Candidate> largest = largest_of(processes);
  if (!largest) return;
  RecordedProcess& process = *largest->process;
  if (is_within(process.last_pressure_bundle, now, kBetweenBundles))
    return listener_.on_memory_pressure(process.session.path, {});
  process.last_pressure_bundle = now;
  const bundles::WriteResult written = write_bundle_of(*largest);
  if (written.bundle.empty())
    remark(written.problem);
  else
    report_(fmt::format("process {}: {}: {}", process.session.pid, written.summary,
                        printable(written.bundle.string())));
  listener_.on_memory_pressure(process.session.path, written.bundle);
}

}  // namespace oomrec::tools::service
