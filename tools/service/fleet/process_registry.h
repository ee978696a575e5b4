// The recorded processes, living and recently dead, for metrics: the figures of each process, and
// their sums by program.
//
// A process gets its own series (label `pid`) if fewer than 200 others are alive when it is first
// seen. It never gets one later, because that series would not begin at 0. Every process counts in
// its program, and its counts stay there, so counters never decrease. A dead process stays for five
// minutes, so that a scraper with an interval of one minute sees its last figures.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tools/service/fleet/listener.h"
#include "tools/service/fleet/monitored_process.h"
#include "tools/service/fleet/new_bundles.h"

namespace oomrec::tools::service {

// The labels of a series.
struct SeriesRow {
  std::string program;
  std::string rank;             // empty: none
  std::optional<int> pid = {};  // empty: all processes of the program and rank
  auto operator<=>(const SeriesRow&) const = default;
};

struct RowFigures {
  Gauges gauges;  // of living processes; of a dead one, its last
  Counts counts;
  std::uint64_t living = 0;
  bool reached[session::kVendors] = {};
  PollClient::Clock::time_point first_seen{};
};

// A process that has ended, and how.
struct Death {
  const MonitoredProcess& process;
  VerdictCode verdict;
  std::optional<Certainty> certainty;  // of the verdict in its bundle
  std::string outcome;                 // as in metadata.json
  std::filesystem::path bundle;        // empty: none
};

class ProcessRegistry : public Listener, public PollClient {
 public:
  static constexpr std::size_t kMostWithPid = 200;  // living ones; and as many dead ones
  static constexpr std::size_t kMostPrograms = 100;
  static constexpr auto kKeepDead = std::chrono::minutes{5};

  // Tests pass their own clock.
  explicit ProcessRegistry(WatchedDirectories directories,
                           std::function<Clock::time_point()> now = Clock::now);

  // Samples each living process, and forgets those that died more than kKeepDead ago.
  void sample();

  void for_each_living(const std::function<void(const MonitoredProcess&)>& visit) const;
  const MonitoredProcess* find(const std::filesystem::path& recording) const;

  // The newest bundle of the process since the watch began; empty: none.
  std::filesystem::path newest_bundle(const std::filesystem::path& recording) const;
  // Whether the process lives and is writing a bundle.
  bool awaits_bundle(const std::filesystem::path& recording) const;

  // A row for each program, and one for each process with its own series.
  std::map<SeriesRow, RowFigures> rows() const;

  // `callback` runs once the end of a process is known.
  void on_death(std::function<void(const Death&)> callback) { on_death_ = std::move(callback); }
  // `callback` runs after a change that should be exported at once.
  void on_change(std::function<void()> callback) { on_change_ = std::move(callback); }

  void on_found(const bundles::Session&, bool same_pid_namespace) override;
  void on_gone(const std::filesystem::path& recording,
               const bundles::RecoveryResult* recovered) override;
  void on_memory_pressure(const std::filesystem::path& recording,
                          const std::filesystem::path& bundle) override;
  void on_scan() override;
  std::optional<Clock::time_point> wake_time() const override;
  void on_poll(std::span<const pollfd>) override;

 private:
  struct Member {
    std::unique_ptr<MonitoredProcess> process;
    SeriesRow row;  // with or without a pid
    Clock::time_point first_seen;
    std::uint64_t bundles_before;  // that it had written before it was found
    std::filesystem::path last_bundle = {};
    std::optional<VerdictCode> own_verdict = {};  // from recovery, for a death without a bundle
    std::optional<Clock::time_point> died = {};
    std::optional<Clock::time_point> conclude_at = {};  // how it ended is decided by then
    bool retired = false;  // it has no series any more, and its counts are in `retired_`
  };
  using Members = std::map<std::filesystem::path, Member>;

  SeriesRow row_for(const MonitoredProcess& process) const;
  std::set<std::filesystem::path> directories_of_bundles() const;
  bool take_new_bundles();
  void conclude(Member& member);
  static bool awaits_bundle_of(const Member& member);
  struct RecordedEnd {
    VerdictCode verdict;
    std::optional<Certainty> certainty;
    std::string outcome;
  };
  static std::optional<RecordedEnd> recorded_end_of(const Member& member);
  void retire(Member& member);
  void forget();

  const WatchedDirectories directories_;
  const std::function<Clock::time_point()> now_;
  Members members_;                                  // by the recording
  std::map<SeriesRow, Counts> retired_;              // by program and rank
  std::map<SeriesRow, Clock::time_point> programs_;  // first seen; never removed
  NewBundles bundles_;
  std::function<void(const Death&)> on_death_;
  std::function<void()> on_change_;
};

}  // namespace oomrec::tools::service
