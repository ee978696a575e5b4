#include "tools/service/alerts/alerts.h"

#include <fmt/format.h>

#include "tools/base/text.h"
#include "tools/bundles/store/outcome.h"
#include "tools/service/alerts/end_text.h"
#include "tools/service/fleet/label_values.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLooks = 1s;
// A recording's start is told by the coarse clock, which may be so far behind.
constexpr std::uint64_t kClockStep_ns = 10'000'000;
constexpr unsigned kLooksForBundle = 6;  // of a refusal: its writer gives up after 5 s

// "python3.11 (pid 4711, rank 2)"
std::string name_of_process(const Subject& subject) {
  const std::string rank = subject.rank().empty() ? "" : fmt::format(", rank {}", subject.rank());
  return fmt::format("{} (pid {}{})", printable(subject.program()), subject.pid(), rank);
}

Concern trouble_of(Rule rule, const Subject& subject) {
  Concern trouble;
  trouble.rule = rule;
  trouble.realtime_ns = bundles::realtime_now_ns();
  trouble.program = subject.program();
  trouble.rank = subject.rank();
  trouble.pid = subject.pid();
  trouble.command_line = subject.command_line();
  return trouble;
}

}  // namespace

Alerts::Alerts(Census& census, std::vector<Courier> couriers, double least_headroom)
    : census_(census),
      couriers_(std::move(couriers)),
      least_headroom_(least_headroom),
      began_ns_(bundles::realtime_now_ns()) {}

void Alerts::look_at_limit(const Subject& subject) {
  const auto& nearest = subject.gauges().nearest;
  if (!nearest ||
      !hysteresis_.falls(subject.path().native(), nearest->headroom_ratio(), least_headroom_))
    return;
  Concern trouble = trouble_of(Rule::near_limit, subject);
  trouble.text = fmt::format("{} is near a limit ({}): {} of {} are left", name_of_process(subject),
                             name_of(nearest->kind), size_text(nearest->headroom_bytes),
                             size_text(nearest->limit_bytes));
  trouble.figures = {{"kind", name_of(nearest->kind)},
                     {"limit_bytes", nearest->limit_bytes},
                     {"headroom_bytes", nearest->headroom_bytes}};
  pace_.add(std::move(trouble));
}

// A device that several processes are on is told of once: by UUID where it is known. What one of
// them has been told of it may be old, so the most that any has been told counts.
void Alerts::look_at_devices() {
  struct Seen {
    Gauges::DeviceBytes bytes;
    std::string label, uuid;
    const Subject* subject;
  };
  std::map<std::string, Seen> devices;
  census_.for_each_living([&](const Subject& subject) {
    for (const auto& [name, bytes] : subject.gauges().devices) {
      const auto& [label, uuid] = name;
      Seen& seen = devices[uuid.empty() ? subject.path().native() + '\n' + label : uuid];
      if (seen.subject == nullptr || seen.bytes.used < bytes.used)
        seen = {bytes, label, uuid, &subject};
    }
  });
  for (const auto& [key, device] : devices) {
    const auto& [used, total] = device.bytes;
    if (total == 0) continue;
    const std::uint64_t free_bytes = total - used;
    const double ratio = static_cast<double>(free_bytes) / static_cast<double>(total);
    if (!hysteresis_.falls(key, ratio, least_headroom_)) continue;
    Concern trouble = trouble_of(Rule::device_nearly_full, *device.subject);
    trouble.text =
        fmt::format("{}, which {} uses, is nearly full: {} of {} are free", device.label,
                    name_of_process(*device.subject), size_text(free_bytes), size_text(total));
    trouble.figures = {{"device", device.label},
                       {"uuid", text_or_null(device.uuid)},
                       {"used_bytes", used},
                       {"total_bytes", total}};
    pace_.add(std::move(trouble));
  }
}

// What was refused before the watch began is not told.
void Alerts::look_at_failures(const Subject& subject, bool has_ended) {
  const std::uint64_t total = subject.counts().failures_total();
  const bool is_older = subject.start_ns() + kClockStep_ns < began_ns_;
  const std::uint64_t before = is_older ? total : 0;
  Refusals& told = refusals_.try_emplace(subject.path(), Refusals{before}).first->second;
  std::filesystem::path bundle = census_.newest_bundle(subject.path());
  if (total <= told.count) {
    told.bundle = std::move(bundle);  // of something else, such as a limit that was near
    return;
  }
  if (!has_ended && bundle == told.bundle) {
    ++told.looks_waited;
    const bool may_just_begin = told.looks_waited == 1;
    if (may_just_begin ||
        (census_.awaits_bundle(subject.path()) && told.looks_waited < kLooksForBundle))
      return;
  }
  const std::uint64_t more = total - told.count;
  told = {total, bundle};
  Concern trouble = trouble_of(Rule::failure, subject);
  trouble.text = fmt::format("{} was refused memory: {}", name_of_process(subject),
                             plural(more, "request", "requests"));
  trouble.bundle = printable(bundle.string());
  trouble.figures = {{"failures", more}, {"failures_total", total}};
  pace_.add(std::move(trouble));
}

void Alerts::on_death(const Death& death) {
  if (!is_for_memory(death.verdict)) return;
  Concern trouble = trouble_of(Rule::death, death.subject);
  trouble.text =
      fmt::format("{} {}", name_of_process(death.subject), end_text(death.outcome, death.verdict));
  trouble.bundle = printable(death.bundle.string());
  trouble.figures = {{"verdict", name_of(death.verdict)}, {"outcome", printable(death.outcome)}};
  pace_.add(std::move(trouble));
}

void Alerts::ended(const std::filesystem::path& recording, const bundles::Recovered*) {
  if (const Subject* const subject = census_.find(recording)) look_at_failures(*subject, true);
  hysteresis_.forget(recording.native());
  refusals_.erase(recording);
}

void Alerts::short_of_memory(const std::filesystem::path& recording,
                             const std::filesystem::path& bundle) {
  const Subject* const subject = census_.find(recording);
  if (subject == nullptr) return;
  Concern trouble = trouble_of(Rule::pressure, *subject);
  trouble.text =
      fmt::format("the machine waits for memory; the largest recorded process is {}, resident {}",
                  name_of_process(*subject), size_text(subject->gauges().rss_bytes));
  trouble.bundle = printable(bundle.string());
  trouble.figures = {{"rss_bytes", subject->gauges().rss_bytes}};
  pace_.add(std::move(trouble));
}

std::optional<Alerts::Clock::time_point> Alerts::wakes_at() const {
  const auto due = pace_.due();
  return due && *due < looks_at_ ? *due : looks_at_;
}

void Alerts::attend(std::span<const pollfd>) {
  const auto now = Clock::now();
  if (now >= looks_at_) {
    looks_at_ = now + kBetweenLooks;
    census_.look();
    census_.for_each_living([this](const Subject& subject) {
      look_at_limit(subject);
      look_at_failures(subject, false);
    });
    look_at_devices();
  }
  for (const Alert& alert : pace_.take(now)) send(alert);
}

void Alerts::send(const Alert& alert) {
  const std::string text = json_text(json_of(alert)) + '\n';
  for (const Courier& courier : couriers_) deliveries_.add(courier, text);
}

}  // namespace oomrec::tools::service
