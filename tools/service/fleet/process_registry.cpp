#include "tools/service/fleet/process_registry.h"

#include <algorithm>
#include <numeric>

#include "common/verdict/kinds.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/stored_facts.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// The time to wait for a bundle while another process (`oomrec run`) recovers the recording.
constexpr auto kConcludeTimeout = 3s;

SeriesRow program_of(SeriesRow row) {
  row.pid.reset();
  return row;
}

}  // namespace

ProcessRegistry::ProcessRegistry(WatchedDirectories watched, std::function<Clock::time_point()> now)
    : directories_(std::move(watched)), now_(std::move(now)), bundles_(directories_of_bundles()) {}

// Programs beyond kMostPrograms share the row "other".
SeriesRow ProcessRegistry::row_for(const MonitoredProcess& process) const {
  SeriesRow row{process.program(), process.rank()};
  if (!programs_.contains(row) && programs_.size() >= kMostPrograms) row = {"other", ""};
  std::size_t with_pid = 0;
  for (const auto& [path, member] : members_) with_pid += !member.died && member.row.pid ? 1 : 0;
  if (with_pid < kMostWithPid) row.pid = process.pid();
  return row;
}

void ProcessRegistry::on_found(const bundles::Session& session, bool same_pid_namespace) {
  if (members_.contains(session.path)) return;  // dead, with a recording that cannot be deleted
  auto process = MonitoredProcess::of(session.path, same_pid_namespace);
  if (process == nullptr) return;
  const SeriesRow row = row_for(*process);
  const auto now = now_();
  const std::uint64_t before = process->bundles_written();
  programs_.emplace(program_of(row), now);
  members_.emplace(session.path, Member{std::move(process), row, now, before});
  if (on_change_) on_change_();
}

const MonitoredProcess* ProcessRegistry::find(const fs::path& recording) const {
  const auto at = members_.find(recording);
  return at == members_.end() ? nullptr : at->second.process.get();
}

fs::path ProcessRegistry::newest_bundle(const fs::path& recording) const {
  const auto at = members_.find(recording);
  return at == members_.end() ? fs::path{} : at->second.last_bundle;
}

bool ProcessRegistry::awaits_bundle(const fs::path& recording) const {
  const auto at = members_.find(recording);
  return at != members_.end() && !at->second.died && awaits_bundle_of(at->second);
}

// Whether the process has written more bundles than were found.
bool ProcessRegistry::awaits_bundle_of(const Member& member) {
  const auto& found = member.process->counts().bundles;
  const auto sum = std::accumulate(found.begin(), found.end(), std::uint64_t{0});
  return member.process->bundles_written() > member.bundles_before + sum;
}

void ProcessRegistry::for_each_living(
    const std::function<void(const MonitoredProcess&)>& visit) const {
  for (const auto& [path, member] : members_)
    if (!member.died) visit(*member.process);
}

std::set<fs::path> ProcessRegistry::directories_of_bundles() const {
  std::set<fs::path> directories{directories_.dumps.begin(), directories_.dumps.end()};
  for (const fs::path& directory : directories_.of_sessions()) directories.insert(directory);
  for (const auto& [path, member] : members_)
    if (!member.retired) directories.insert(member.process->dump_directory());
  return directories;
}

// Returns whether there were any.
bool ProcessRegistry::take_new_bundles() {
  const std::vector<NewBundle> found = bundles_.take_new(directories_of_bundles());
  for (const NewBundle& bundle : found) {
    Member* writer = nullptr;
    for (auto& [path, member] : members_) {
      const bool fits = !member.retired && member.process->process_key() == bundle.process;
      // A process has several recordings after exec: take the latest.
      if (fits && (writer == nullptr || writer->process->start_ns() < member.process->start_ns()))
        writer = &member;
    }
    const auto trigger = static_cast<std::size_t>(bundle.trigger);
    if (writer != nullptr) {
      writer->process->counts().bundles[trigger] += 1;
      writer->last_bundle = bundle.path;
    } else if (const SeriesRow program{bundle.program, bundle.rank}; programs_.contains(program)) {
      retired_[program].bundles[trigger] += 1;  // its process ended before it was seen
    }
  }
  return !found.empty();
}

void ProcessRegistry::sample() {
  bool writes_bundle = false;
  std::vector<fs::path> replaced;
  for (auto& [path, member] : members_) {
    if (member.died) continue;
    member.process->sample();
    writes_bundle = writes_bundle || awaits_bundle_of(member);
    if (member.process->is_replaced()) replaced.push_back(path);
  }
  for (const fs::path& path : replaced) on_gone(path, nullptr);
  if (writes_bundle) take_new_bundles();
  forget();
}

void ProcessRegistry::on_scan() {
  if (take_new_bundles() && on_change_) on_change_();
}

void ProcessRegistry::on_memory_pressure(const fs::path&, const fs::path& bundle) {
  if (!bundle.empty()) on_scan();
}

void ProcessRegistry::on_gone(const fs::path& recording, const bundles::RecoveryResult* recovered) {
  const auto at = members_.find(recording);
  if (at == members_.end() || at->second.died) return;
  Member& member = at->second;
  member.process->finish();
  member.died = now_();
  take_new_bundles();
  if (recovered != nullptr) {
    if (!recovered->bundle.empty()) member.last_bundle = recovered->bundle;
    member.own_verdict = recovered->verdict;
  }
  const bool is_being_recovered = recovered != nullptr &&
                                  recovered->action == bundles::RecoveryAction::left &&
                                  !member.process->exited() && !member.process->was_replaced();
  if (is_being_recovered && member.last_bundle.empty()) {
    member.conclude_at = *member.died + kConcludeTimeout;
  } else {
    conclude(member);
  }
  forget();
}

// Empty while the bundle is not completed, and if the process survived the bundle's event.
std::optional<ProcessRegistry::RecordedEnd> ProcessRegistry::recorded_end_of(const Member& dead) {
  if (dead.last_bundle.empty()) return {};
  const auto stored = bundles::read_file<bundles::Metadata>(dead.last_bundle);
  const std::string& outcome = stored.outcome;
  const facts::Verdict& verdict = stored.verdict;
  if (outcome.empty() || outcome == name_of(OutcomeKind::running) ||
      outcome == name_of(OutcomeKind::recovered) || !verdict::is_death(verdict.code))
    return {};
  return RecordedEnd{verdict.code,
                     verdict.has_certainty() ? std::optional{verdict.certainty} : std::nullopt,
                     outcome};
}

void ProcessRegistry::conclude(Member& member) {
  member.conclude_at.reset();
  const MonitoredProcess& process = *member.process;
  if (process.was_replaced()) {  // not a death: the process continues with another recording
    retire(member);
  } else {
    const std::optional<RecordedEnd> recorded = recorded_end_of(member);
    const VerdictCode otherwise =
        member.own_verdict.value_or(process.exited() ? VerdictCode::exited : VerdictCode::unknown);
    const VerdictCode verdict = recorded ? recorded->verdict : otherwise;
    const std::optional<Certainty> certainty = recorded ? recorded->certainty : std::nullopt;
    member.process->counts().add_death(verdict, certainty);
    if (on_death_)
      on_death_({process, verdict, certainty,
                 recorded ? recorded->outcome : std::string{name_of(OutcomeKind::unknown)},
                 recorded ? member.last_bundle : fs::path{}});
  }
  if (on_change_) on_change_();
}

// Moves its counts to another recording of the same series, so that the series does not decrease;
// if there is none, to its program.
void ProcessRegistry::retire(Member& member) {
  member.retired = true;
  Counts* heir = &retired_[program_of(member.row)];
  for (auto& [path, other] : members_)
    if (!other.retired && other.row == member.row && member.row.pid)
      heir = &other.process->counts();
  *heir += member.process->counts();
}

void ProcessRegistry::forget() {
  const auto now = now_();
  std::vector<Member*> dead;
  for (auto& [path, member] : members_) {
    if (!member.died || member.retired || member.conclude_at) continue;
    now - *member.died >= kKeepDead ? retire(member) : dead.push_back(&member);
  }
  if (dead.size() > kMostWithPid) {
    const auto last = dead.end() - static_cast<std::ptrdiff_t>(kMostWithPid);
    std::ranges::sort(dead, [](const Member* a, const Member* b) { return a->died < b->died; });
    std::for_each(dead.begin(), last, [this](Member* member) { retire(*member); });
  }
  // A recording that cannot be deleted would be found again: keep its member.
  std::erase_if(members_, [](const auto& entry) {
    std::error_code error;
    return entry.second.retired && !fs::exists(entry.first, error);
  });
}

std::map<SeriesRow, RowFigures> ProcessRegistry::rows() const {
  std::map<SeriesRow, RowFigures> rows;
  for (const auto& [program, first_seen] : programs_) rows[program].first_seen = first_seen;
  for (const auto& [program, counts] : retired_) rows[program].counts += counts;
  std::map<SeriesRow, const Member*> last_dead;
  for (const auto& [path, member] : members_) {
    if (member.retired) continue;
    std::vector<SeriesRow> of = {program_of(member.row)};
    if (member.row.pid) of.push_back(member.row);
    for (const SeriesRow& row : of) {
      RowFigures& figures = rows[row];
      figures.counts += member.process->counts();
      if (row.pid &&
          (figures.first_seen == Clock::time_point{} || member.first_seen < figures.first_seen))
        figures.first_seen = member.first_seen;
      for (std::size_t vendor = 0; vendor < session::kVendors; ++vendor)
        figures.reached[vendor] = figures.reached[vendor] ||
                                  member.process->has_reached(static_cast<session::Vendor>(vendor));
      if (!member.died) {
        figures.living += 1;
        figures.gauges.add(member.process->gauges());
      } else if (const Member*& last = last_dead[row];
                 row.pid && (last == nullptr || last->died < member.died)) {
        last = &member;
      }
    }
  }
  for (const auto& [row, member] : last_dead)
    if (member != nullptr && rows[row].living == 0) rows[row].gauges = member->process->gauges();
  return rows;
}

std::optional<ProcessRegistry::Clock::time_point> ProcessRegistry::wake_time() const {
  std::optional<Clock::time_point> at;
  for (const auto& [path, member] : members_)
    if (member.conclude_at && (!at || *member.conclude_at < *at)) at = member.conclude_at;
  return at;
}

void ProcessRegistry::on_poll(std::span<const pollfd>) {
  const auto now = now_();
  for (auto& [path, member] : members_) {
    if (!member.conclude_at) continue;
    if (now >= *member.conclude_at || recorded_end_of(member)) conclude(member);
  }
}

}  // namespace oomrec::tools::service
