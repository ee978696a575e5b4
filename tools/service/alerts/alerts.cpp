#include "tools/service/alerts/alerts.h"

#include <fmt/format.h>

#include <utility>

#include "common/verdict/kinds.h"
#include "tools/base/text.h"
#include "tools/bundles/store/outcome.h"
#include "tools/service/alerts/incident.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenChecks = 1s;
// A recording's start is from the coarse clock, which may lag by this much.
constexpr std::uint64_t kCoarseClockLagNs = 10'000'000;
// How far a share must rise above the threshold before it can alert again.
constexpr double kResetMargin = 0.05;
constexpr unsigned kChecksForBundle = 6;  // of a failure: the bundle's writer gives up after 5 s

// "python3.11 (pid 4711, rank 2)"
std::string name_of_process(const MonitoredProcess& process) {
  const std::string rank = process.rank().empty() ? "" : fmt::format(", rank {}", process.rank());
  return fmt::format("{} (pid {}{})", printable(process.program()), process.pid(), rank);
}

Incident incident_of(Rule rule, const MonitoredProcess& process) {
  Incident incident;
  incident.rule = rule;
  incident.realtime_ns = bundles::realtime_now_ns();
  incident.program = process.program();
  incident.rank = process.rank();
  incident.pid = process.pid();
  incident.command_line = process.command_line();
  return incident;
}

}  // namespace

Alerts::Alerts(ProcessRegistry& registry, std::vector<Notifier> notifiers, double least_headroom)
    : registry_(registry),
      notifiers_(std::move(notifiers)),
      least_headroom_(least_headroom),
      watch_start_ns_(bundles::realtime_now_ns()) {}

bool Alerts::is_new_shortage(const std::string& key, double ratio) {
  return shortages_.begins(key, ratio < least_headroom_, ratio >= least_headroom_ + kResetMargin);
}

void Alerts::check_limit(const MonitoredProcess& process) {
  const auto& nearest = process.gauges().nearest;
  if (!nearest || !is_new_shortage(process.path().native(), nearest->headroom_ratio())) return;
  Incident incident = incident_of(Rule::near_limit, process);
  incident.text = fmt::format("{} is near a limit ({}): {} of {} are left",
                              name_of_process(process), name_of(nearest->kind),
                              size_text(nearest->headroom_bytes), size_text(nearest->limit_bytes));
  incident.figures = {{"kind", name_of(nearest->kind)},
                      {"limit_bytes", nearest->limit_bytes},
                      {"headroom_bytes", nearest->headroom_bytes}};
  rate_limit_.add(std::move(incident));
}

// Sends one alert for a device that several processes share, identified by its UUID if known. A
// process' figures may be old, so the highest use that any process has seen counts.
void Alerts::check_devices() {
  struct DeviceUse {
    Gauges::DeviceBytes bytes;
    std::string label, uuid;
    const MonitoredProcess* process;
  };
  std::map<std::string, DeviceUse> devices;
  registry_.for_each_living([&](const MonitoredProcess& process) {
    for (const auto& [name, bytes] : process.gauges().devices) {
      const auto& [label, uuid] = name;
      DeviceUse& use = devices[uuid.empty() ? process.path().native() + '\n' + label : uuid];
      if (use.process == nullptr || use.bytes.used < bytes.used)
        use = {bytes, label, uuid, &process};
    }
  });
  for (const auto& [key, device] : devices) {
    const auto& [used, total] = device.bytes;
    if (total == 0) continue;
    const std::uint64_t free_bytes = total - used;
    const double ratio = static_cast<double>(free_bytes) / static_cast<double>(total);
    if (!is_new_shortage(key, ratio)) continue;
    Incident incident = incident_of(Rule::device_nearly_full, *device.process);
    incident.text =
        fmt::format("{}, which {} uses, is nearly full: {} of {} are free", device.label,
                    name_of_process(*device.process), size_text(free_bytes), size_text(total));
    incident.figures = {{"device", device.label},
                        {"uuid", text_or_null(device.uuid)},
                        {"used_bytes", used},
                        {"total_bytes", total}};
    rate_limit_.add(std::move(incident));
  }
}

// Does not report failures from before the watch began.
void Alerts::check_failures(const MonitoredProcess& process, ProcessState state) {
  const std::uint64_t total = process.counts().failures_total();
  const bool is_older = process.start_ns() + kCoarseClockLagNs < watch_start_ns_;
  const std::uint64_t before = is_older ? total : 0;
  ReportedFailures& reported =
      reported_failures_.try_emplace(process.path(), ReportedFailures{before}).first->second;
  std::filesystem::path bundle = registry_.newest_bundle(process.path());
  if (total <= reported.count) {
    reported.bundle = std::move(bundle);  // of another event, such as near_limit
    return;
  }
  if (state == ProcessState::running && bundle == reported.bundle) {
    ++reported.samples_waited;
    const bool is_first_wait = reported.samples_waited == 1;  // the writer may not have started yet
    if (is_first_wait ||
        (registry_.awaits_bundle(process.path()) && reported.samples_waited < kChecksForBundle))
      return;
  }
  const std::uint64_t more = total - reported.count;
  reported = {total, bundle};
  Incident incident = incident_of(Rule::failure, process);
  incident.text = fmt::format("{} was refused memory: {}", name_of_process(process),
                              plural(more, "request", "requests"));
  incident.bundle = printable(bundle.string());
  incident.figures = {{"failures", more}, {"failures_total", total}};
  rate_limit_.add(std::move(incident));
}

void Alerts::on_death(const Death& death) {
  if (!verdict::is_death_related_to_memory(death.verdict)) return;
  Incident incident = incident_of(Rule::death, death.process);
  incident.text = fmt::format("{} {}", name_of_process(death.process),
                              end_text(death.outcome, death.verdict, death.certainty));
  incident.bundle = printable(death.bundle.string());
  incident.figures = {
      {"verdict", name_of(death.verdict)},
      {"certainty", death.certainty ? Json(name_of(*death.certainty)) : Json(nullptr)},
      {"outcome", printable(death.outcome)}};
  rate_limit_.add(std::move(incident));
}

void Alerts::on_gone(const std::filesystem::path& recording, const bundles::RecoveryResult*) {
  if (const MonitoredProcess* const process = registry_.find(recording))
    check_failures(*process, ProcessState::ended);
  shortages_.forget(recording.native());
  reported_failures_.erase(recording);
}

void Alerts::on_memory_pressure(const std::filesystem::path& recording,
                                const std::filesystem::path& bundle) {
  const MonitoredProcess* const process = registry_.find(recording);
  if (process == nullptr) return;
  Incident incident = incident_of(Rule::pressure, *process);
  incident.text = fmt::format(
      "the machine is under memory pressure; the largest recorded process is {}, resident {}",
      name_of_process(*process), size_text(process->gauges().rss_bytes));
  incident.bundle = printable(bundle.string());
  incident.figures = {{"rss_bytes", process->gauges().rss_bytes}};
  rate_limit_.add(std::move(incident));
}

std::optional<Alerts::Clock::time_point> Alerts::wake_time() const {
  const auto due = rate_limit_.due();
  return due && *due < next_check_ ? *due : next_check_;
}

void Alerts::on_poll(std::span<const pollfd>) {
  const auto now = Clock::now();
  if (now >= next_check_) {
    next_check_ = now + kBetweenChecks;
    registry_.sample();
    registry_.for_each_living([this](const MonitoredProcess& process) {
      check_limit(process);
      check_failures(process, ProcessState::running);
    });
    check_devices();
  }
  for (const Alert& alert : rate_limit_.take_due(now)) send(alert);
}

void Alerts::send(const Alert& alert) {
  const std::string text = json_text(json_of(alert)) + '\n';
  for (const Notifier& notifier : notifiers_) notifier_processes_.add(notifier, text);
}

void RateLimit::add(Incident incident) {
  std::optional<Alert>& alert = waiting_[incident.rule].alert;
  if (!alert) {
    alert = Alert{std::move(incident), {}};
  } else if (alert->also.size() < kMostAlso) {
    alert->also.push_back(std::move(incident));
  } else {
    alert->left_out += 1;
  }
}

std::vector<Alert> RateLimit::take_due(Clock::time_point now) {
  std::vector<Alert> due;
  for (auto& [rule, waiting] : waiting_) {
    if (!waiting.alert || now < waiting.due()) continue;
    due.push_back(std::move(*std::exchange(waiting.alert, std::nullopt)));
    waiting.last = now;
  }
  return due;
}

std::optional<RateLimit::Clock::time_point> RateLimit::due() const {
  std::optional<Clock::time_point> at;
  for (const auto& [rule, waiting] : waiting_)
    if (waiting.alert && (!at || waiting.due() < *at)) at = waiting.due();
  return at;
}

}  // namespace oomrec::tools::service
