// The recorded processes, living and lately dead, as metrics have them: each with its figures, and
// each program with the sum of its processes.
//
// A process of its own has a name of its own (the label `pid`) when it is one of the first 200 that
// live at a time. That is decided when it is first seen: a series that began in the middle of its
// life would begin with a count. Every process counts in its program, and what it has counted stays
// there: counters never fall. A dead process stays for five minutes, so that whoever scrapes once a
// minute sees its last figures.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/service/fleet/bundle_watch.h"
#include "tools/service/fleet/listener.h"
#include "tools/service/fleet/poll_client.h"
#include "tools/service/fleet/subject.h"

namespace oomrec::tools::service {

// What the label values are of.
struct SeriesRow {
  std::string program;
  std::string rank;             // empty: it has none
  std::optional<int> pid = {};  // nothing: of all processes of the program and rank
  auto operator<=>(const SeriesRow&) const = default;
};

struct RowFigures {
  Gauges gauges;  // of those that live; of a process that is dead, its last
  Counts counts;
  std::uint64_t living = 0;
  bool reached[session::kVendors] = {};
  Attendant::Clock::time_point born{};  // when it was first seen
};

// A process that is no more.
struct Death {
  const Subject& subject;
  VerdictCode verdict;
  std::string outcome;           // as in metadata.json
  std::filesystem::path bundle;  // empty: there is none
};

class Census : public Listener, public Attendant {
 public:
  static constexpr std::size_t kMostWithPid = 200;  // living; and as many dead ones
  static constexpr std::size_t kMostPrograms = 100;
  static constexpr auto kKeepsDead = std::chrono::minutes{5};

  // `now`: what tells the time, for tests.
  explicit Census(std::vector<std::filesystem::path> dump_directories,
                  std::function<Clock::time_point()> now = Clock::now);

  // Reads all that lives, and forgets who has been dead for long.
  void look();

  // Those that live, and what they are.
  void for_each_living(const std::function<void(const Subject&)>& visit) const;
  const Subject* find(const std::filesystem::path& recording) const;

  // Of those that came since the watch began; empty: there is none.
  std::filesystem::path newest_bundle(const std::filesystem::path& recording) const;
  // Whether one of a living process is being written.
  bool awaits_bundle(const std::filesystem::path& recording) const;

  // All programs, then all processes that have a pid.
  std::map<SeriesRow, RowFigures> rows() const;

  // Called when it is known how a process ended.
  void on_death(std::function<void(const Death&)> told) { tells_death_ = std::move(told); }
  // Called when something has changed that is worth writing at once.
  void on_change(std::function<void()> told) { tells_change_ = std::move(told); }

  void began(const bundles::Session&, bool in_sight) override;
  void ended(const std::filesystem::path& recording, const bundles::Recovered* recovered) override;
  void short_of_memory(const std::filesystem::path& recording,
                       const std::filesystem::path& bundle) override;
  void looked() override;
  std::optional<Clock::time_point> wakes_at() const override;
  void attend(std::span<const pollfd>) override;

 private:
  struct Member {
    std::unique_ptr<Subject> subject;
    SeriesRow row;  // with or without a pid
    Clock::time_point born;
    std::uint64_t bundles_before;  // that it had written by itself
    std::filesystem::path last_bundle = {};
    std::optional<VerdictCode> own_verdict = {};               // of a death without a bundle
    std::optional<Clock::time_point> died = {}, settles = {};  // settles: by then it is known how
    bool retired = false;  // its series are gone, and its counts are in `retired_`
  };
  using Members = std::map<std::filesystem::path, Member>;

  SeriesRow row_for(const Subject& subject) const;
  std::set<std::filesystem::path> directories_of_bundles() const;
  bool take_new_bundles();
  void settle(Member& member);
  static bool awaits_bundle_of(const Member& member);
  struct ToldEnd {
    VerdictCode verdict;
    std::string outcome;
  };
  static std::optional<ToldEnd> told_end_of(const Member& member);
  void retire(Member& member);
  void forget();

  const std::vector<std::filesystem::path> dump_directories_;
  const std::function<Clock::time_point()> now_;
  Members members_;                                  // by the recording
  std::map<SeriesRow, Counts> retired_;              // by program and rank
  std::map<SeriesRow, Clock::time_point> programs_;  // that were ever seen, and when: they stay
  BundleWatch bundles_;
  std::function<void(const Death&)> tells_death_;
  std::function<void()> tells_change_;
};

}  // namespace oomrec::tools::service
