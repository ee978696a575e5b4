#include "tools/service/fleet/monitored_process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "common/bundle/session_summary.h"
#include "common/limits/health.h"
#include "common/text/text.h"
#include "tools/base/error.h"
#include "tools/deaths/current_health.h"
#include "tools/recording/live/mapping.h"
#include "tools/recording/reading/devices.h"
#include "tools/service/fleet/label_values.h"

namespace oomrec::tools::service {
namespace {

using session::State;
using session::TableId;

// A failure is in the total before it is in the table. If it is not in the table after this many
// samples, the table is full, and the failure counts as `other`.
constexpr unsigned kSamplesToWait = 3;

Gauges::Nearest headroom_of(const limit::LimitUsage& nearness) {
  const std::uint64_t used = std::min(nearness.used_bytes, nearness.limit_bytes);
  return {nearness.kind, nearness.limit_bytes, nearness.limit_bytes - used};
}

}  // namespace

std::unique_ptr<MonitoredProcess> MonitoredProcess::of(const std::filesystem::path& path,
                                                       bool same_pid_namespace) {
  const recording::MappedFile mapped = recording::map_file(path);
  if (mapped.bytes == nullptr) return nullptr;
  try {
    return std::unique_ptr<MonitoredProcess>{new MonitoredProcess{
        path, std::make_unique<recording::Recording>(path, mapped.bytes, mapped.size),
        same_pid_namespace}};
  } catch (const Error&) {
    return nullptr;  // it is being deleted
  }
}

MonitoredProcess::MonitoredProcess(const std::filesystem::path& path,
                                   std::unique_ptr<recording::Recording> recording,
                                   bool same_pid_namespace)
    : path_(path), recording_(std::move(recording)), same_pid_namespace_(same_pid_namespace) {
  const session::Header& header = recording_->header();
  program_ = text::base_name(recording_->text(program_of(header)));
  command_line_ = fmt::format("{}", fmt::join(recording_->arguments(), " "));
  dump_directory_ = recording_->text(header.dump_directory);
  pid_ = header.pid;
  if (header.rank.known != 0) rank_ = std::to_string(header.rank.rank);
  start_ns_ = header.start_realtime_ns;
  char key[96];
  process_key_ = bundle::process_key(header, key);
  sample();
}

void MonitoredProcess::sample() {
  if (recording_ == nullptr) return;
  const session::View& view = recording_->view();
  const session::Header& header = view.header();
  sample_memory();
  sample_devices();
  count_failures();
  bundles_written_ = header.bundles_written;
  counts_.events = std::max(counts_.events, recording_->event_count());
  counts_.dropped_events = std::max<std::uint64_t>(counts_.dropped_events, header.dropped_events);
}

void MonitoredProcess::sample_memory() {
  const session::View& view = recording_->view();
  const session::Header& header = view.header();
  std::uint64_t on_host = 0;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const auto space = static_cast<Space>(i);
    const std::uint64_t live = recording_->totals(space).live_bytes;
    const std::uint64_t peak = std::max<std::uint64_t>(header.spaces[i].peak_bytes, live);
    const bool is_always_there = space == Space::heap || space == Space::map;
    if (is_always_there) on_host += live;
    if (!is_always_there && peak == 0 && !gauges_.spaces.contains(space)) continue;
    Gauges::SpaceBytes& bytes = gauges_.spaces[space];
    bytes = {live, std::max(bytes.peak, peak)};
  }

  session::Health health;
  std::memcpy(static_cast<void*>(&health), static_cast<const void*>(&header.health), sizeof health);
  health.live_bytes = on_host;
  if (same_pid_namespace_ && !ended_) {
    if (cgroup_limit_bytes_ != health.cgroup_limit_bytes.load()) {
      cgroup_ = deaths::limiting_cgroup(deaths::recorded_cgroup(view));
      cgroup_limit_bytes_ = health.cgroup_limit_bytes;
    }
    limit::read_quick_health(OutsideHooks::in_hook(), cgroup_, health, pid_);
  }
  if (health.rss_bytes == 0) return;  // it has just ended, and is no longer in /proc
  gauges_.rss_bytes = health.rss_bytes;

  gauges_.limits.clear();
  gauges_.nearest.reset();
  const std::uint64_t soft = header.soft_limit_bytes;
  const auto near = {limit::usage_of_killing_limit(health),
                     limit::usage_of_failing_limit(health, soft)};
  for (const limit::LimitUsage& nearness : near) {
    if (nearness.limit_bytes == 0) continue;
    const Gauges::Nearest headroom = headroom_of(nearness);
    if (!gauges_.nearest || headroom.headroom_ratio() < gauges_.nearest->headroom_ratio())
      gauges_.nearest = headroom;
  }
  const auto add_limit = [&](LimitKind kind, std::uint64_t bytes) {
    if (bytes != 0 && bytes != session::kUnlimited) gauges_.limits[kind] = bytes;
  };
  add_limit(LimitKind::soft, soft);
  add_limit(LimitKind::rlimit_as, health.rlimit_as_bytes);
  add_limit(LimitKind::cgroup, health.cgroup_limit_bytes);
}

void MonitoredProcess::sample_devices() {
  const session::Header& header = recording_->header();
  for (std::size_t vendor = 0; vendor < session::kVendors; ++vendor)
    reached_[vendor] = reached_[vendor] || header.drivers[vendor].wrapped != 0;
  for (const recording::DeviceFigures& device : recording::devices_of(*recording_, 0)) {
    if (device.driver_sample)
      gauges_.devices[{device.label, device.uuid}] = {
          device.driver_sample->total_bytes - device.driver_sample->free_bytes,
          device.driver_sample->total_bytes};
  }
}

// The session's total is the exact number of failures. Its table has one entry per stack, is
// bounded, and contains some failures twice (with the crash that follows): it serves only to divide
// the total by function.
void MonitoredProcess::count_failures() {
  const session::View& view = recording_->view();
  const std::uint64_t total = view.header().failures_total;
  unattributed_failures_ += total > seen_failures_ ? total - seen_failures_ : 0;
  seen_failures_ = std::max(seen_failures_, total);
  if (unattributed_failures_ == 0) return;
  std::map<Api, std::uint64_t> table;
  for (const auto& failure : session::entries<session::Failure>(view, TableId::failures)) {
    if ((failure.flags & session::kFailureProbe) != 0) continue;
    table[static_cast<Api>(failure.api)] += 1 + std::uint64_t{failure.repeats};
  }
  for (const auto& [api, count] : table) {
    std::uint64_t& attributed = attributed_[api];
    const std::uint64_t more =
        std::min(count > attributed ? count - attributed : 0, unattributed_failures_);
    attributed += more;
    unattributed_failures_ -= more;
    const std::vector<Api>& possible = failable_apis(set_of(api));
    const bool has_label = std::ranges::find(possible, api) != possible.end();
    counts_.failures[has_label ? api : Api::none] += more;
  }
  samples_waited_ = unattributed_failures_ == 0 ? 0 : samples_waited_ + 1;
  if (unattributed_failures_ != 0 && (ended_ || samples_waited_ >= kSamplesToWait)) {
    counts_.failures[Api::none] += unattributed_failures_;
    unattributed_failures_ = 0;
  }
}

bool MonitoredProcess::is_replaced() const {
  return recording_ != nullptr &&
         static_cast<State>(recording_->header().state.load()) == State::replaced &&
         session::life_of(recording_->view()) == session::Life::dead;
}

void MonitoredProcess::finish() {
  if (recording_ == nullptr) return;
  ended_ = true;
  sample();
  const auto state = static_cast<State>(recording_->header().state.load());
  replaced_ = state == State::replaced;
  exited_ = state == State::exited;
  recording_.reset();
}

}  // namespace oomrec::tools::service
