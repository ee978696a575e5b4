#include "tools/service/fleet/process_registry.h"

#include <algorithm>
#include <numeric>

#include "tools/base/json.h"
#include "tools/bundles/store/bundles.h"
#include "tools/service/fleet/label_values.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Where somebody else (`oomrec run`) is at the recording, how long its bundle may take.
constexpr auto kUntilSettled = 3s;

SeriesRow program_of(SeriesRow row) {
  row.pid.reset();
  return row;
}

}  // namespace

Census::Census(std::vector<fs::path> dump_directories, std::function<Clock::time_point()> now)
    : dump_directories_(std::move(dump_directories)),
      now_(std::move(now)),
      bundles_(directories_of_bundles()) {}

// A program too many is counted with the others of its kind.
SeriesRow Census::row_for(const Subject& subject) const {
  SeriesRow row{subject.program(), subject.rank()};
  if (!programs_.contains(row) && programs_.size() >= kMostPrograms) row = {"other", ""};
  std::size_t with_pid = 0;
  for (const auto& [path, member] : members_) with_pid += !member.died && member.row.pid ? 1 : 0;
  if (with_pid < kMostWithPid) row.pid = subject.pid();
  return row;
}

void Census::began(const bundles::Session& session, bool in_sight) {
  if (members_.contains(session.path)) return;  // dead, and its recording may not be removed
  auto subject = Subject::of(session.path, in_sight);
  if (subject == nullptr) return;
  const SeriesRow row = row_for(*subject);
  const auto now = now_();
  const std::uint64_t before = subject->bundles_written();
  programs_.emplace(program_of(row), now);
  members_.emplace(session.path, Member{std::move(subject), row, now, before});
  if (tells_change_) tells_change_();
}

const Subject* Census::find(const fs::path& recording) const {
  const auto at = members_.find(recording);
  return at == members_.end() ? nullptr : at->second.subject.get();
}

fs::path Census::newest_bundle(const fs::path& recording) const {
  const auto at = members_.find(recording);
  return at == members_.end() ? fs::path{} : at->second.last_bundle;
}

bool Census::awaits_bundle(const fs::path& recording) const {
  const auto at = members_.find(recording);
  return at != members_.end() && !at->second.died && awaits_bundle_of(at->second);
}

// It has written more bundles than were found.
bool Census::awaits_bundle_of(const Member& member) {
  const auto& found = member.subject->counts().bundles;
  const auto sum = std::accumulate(found.begin(), found.end(), std::uint64_t{0});
  return member.subject->bundles_written() > member.bundles_before + sum;
}

void Census::for_each_living(const std::function<void(const Subject&)>& visit) const {
  for (const auto& [path, member] : members_)
    if (!member.died) visit(*member.subject);
}

std::set<fs::path> Census::directories_of_bundles() const {
  std::set<fs::path> directories{dump_directories_.begin(), dump_directories_.end()};
  for (const fs::path& directory : bundles::session_directories(dump_directories_))
    directories.insert(directory);
  for (const auto& [path, member] : members_)
    if (!member.retired) directories.insert(member.subject->dump_directory());
  return directories;
}

// True: there were some.
bool Census::take_new_bundles() {
  const std::vector<NewBundle> found = bundles_.look(directories_of_bundles());
  for (const NewBundle& bundle : found) {
    Member* writer = nullptr;
    for (auto& [path, member] : members_) {
      const bool fits = !member.retired && member.subject->process_key() == bundle.process;
      // Of one process with several recordings, by exec, the latest.
      if (fits && (writer == nullptr || writer->subject->start_ns() < member.subject->start_ns()))
        writer = &member;
    }
    const auto trigger = static_cast<std::size_t>(bundle.trigger);
    if (writer != nullptr) {
      writer->subject->counts().bundles[trigger] += 1;
      writer->last_bundle = bundle.path;
    } else if (const SeriesRow program{bundle.program, bundle.rank}; programs_.contains(program)) {
      retired_[program].bundles[trigger] += 1;  // its process was gone before it was seen
    }
  }
  return !found.empty();
}

void Census::look() {
  bool untold = false;
  std::vector<fs::path> replaced;
  for (auto& [path, member] : members_) {
    if (member.died) continue;
    member.subject->look();
    untold = untold || awaits_bundle_of(member);
    if (member.subject->is_replaced()) replaced.push_back(path);
  }
  for (const fs::path& path : replaced) ended(path, nullptr);
  if (untold) take_new_bundles();
  forget();
}

void Census::looked() {
  if (take_new_bundles() && tells_change_) tells_change_();
}

void Census::short_of_memory(const fs::path&, const fs::path& bundle) {
  if (!bundle.empty()) looked();
}

void Census::ended(const fs::path& recording, const bundles::Recovered* recovered) {
  const auto at = members_.find(recording);
  if (at == members_.end() || at->second.died) return;
  Member& member = at->second;
  member.subject->end();
  member.died = now_();
  take_new_bundles();
  if (recovered != nullptr) {
    if (!recovered->bundle.empty()) member.last_bundle = recovered->bundle;
    member.own_verdict = recovered->verdict;
  }
  const bool others_tell = recovered != nullptr && recovered->what == bundles::Recovery::left &&
                           !member.subject->exited() && !member.subject->was_replaced();
  if (others_tell && member.last_bundle.empty()) {
    member.settles = *member.died + kUntilSettled;
  } else {
    settle(member);
  }
  forget();
}

// Nothing while its bundle is not completed, or when the process lived on after it.
std::optional<Census::ToldEnd> Census::told_end_of(const Member& dead) {
  if (dead.last_bundle.empty()) return {};
  const Json metadata = read_json(dead.last_bundle / "metadata.json");
  const std::string outcome = text_of(metadata, "outcome").value_or("running");
  const std::string word = text_of(member(metadata, "verdict"), "code").value_or("");
  const auto name = std::find(kVerdictNames.begin(), kVerdictNames.end(), word);
  if (outcome == name_of(OutcomeKind::running) || outcome == name_of(OutcomeKind::recovered) ||
      name == kVerdictNames.end())
    return {};
  const auto verdict = static_cast<VerdictCode>(name - kVerdictNames.begin());
  return is_of_a_death(verdict) ? std::optional{ToldEnd{verdict, outcome}} : std::nullopt;
}

void Census::settle(Member& member) {
  member.settles.reset();
  const Subject& subject = *member.subject;
  if (subject.was_replaced()) {  // no death: the process goes on under another recording
    retire(member);
  } else {
    const std::optional<ToldEnd> told = told_end_of(member);
    const VerdictCode otherwise =
        member.own_verdict.value_or(subject.exited() ? VerdictCode::exited : VerdictCode::unknown);
    const VerdictCode verdict = told ? told->verdict : otherwise;
    member.subject->counts().deaths[static_cast<std::size_t>(verdict)] += 1;
    if (tells_death_)
      tells_death_({subject, verdict,
                    told ? told->outcome : std::string{name_of(OutcomeKind::unknown)},
                    told ? member.last_bundle : fs::path{}});
  }
  if (tells_change_) tells_change_();
}

// What it counted goes to another recording of the same series, where there is one, so that this
// goes on without a fall; else to its program.
void Census::retire(Member& member) {
  member.retired = true;
  Counts* heir = &retired_[program_of(member.row)];
  for (auto& [path, other] : members_)
    if (!other.retired && other.row == member.row && member.row.pid)
      heir = &other.subject->counts();
  *heir += member.subject->counts();
}

void Census::forget() {
  const auto now = now_();
  std::vector<Member*> dead;
  for (auto& [path, member] : members_) {
    if (!member.died || member.retired || member.settles) continue;
    now - *member.died >= kKeepsDead ? retire(member) : dead.push_back(&member);
  }
  if (dead.size() > kMostWithPid) {
    const auto last = dead.end() - static_cast<std::ptrdiff_t>(kMostWithPid);
    std::sort(dead.begin(), dead.end(),
              [](const Member* a, const Member* b) { return a->died < b->died; });
    std::for_each(dead.begin(), last, [this](Member* member) { retire(*member); });
  }
  // One whose recording stays, because it may not be removed, would be found again.
  std::erase_if(members_, [](const auto& entry) {
    std::error_code error;
    return entry.second.retired && !fs::exists(entry.first, error);
  });
}

std::map<SeriesRow, RowFigures> Census::rows() const {
  std::map<SeriesRow, RowFigures> rows;
  for (const auto& [program, born] : programs_) rows[program].born = born;
  for (const auto& [program, counts] : retired_) rows[program].counts += counts;
  std::map<SeriesRow, const Member*> last_dead;
  for (const auto& [path, member] : members_) {
    if (member.retired) continue;
    std::vector<SeriesRow> of = {program_of(member.row)};
    if (member.row.pid) of.push_back(member.row);
    for (const SeriesRow& row : of) {
      RowFigures& figures = rows[row];
      figures.counts += member.subject->counts();
      if (row.pid && (figures.born == Clock::time_point{} || member.born < figures.born))
        figures.born = member.born;
      for (std::size_t vendor = 0; vendor < session::kVendors; ++vendor)
        figures.reached[vendor] = figures.reached[vendor] ||
                                  member.subject->has_reached(static_cast<session::Vendor>(vendor));
      if (!member.died) {
        figures.living += 1;
        figures.gauges.add(member.subject->gauges());
      } else if (const Member*& last = last_dead[row];
                 row.pid && (last == nullptr || last->died < member.died)) {
        last = &member;
      }
    }
  }
  for (const auto& [row, member] : last_dead)
    if (member != nullptr && rows[row].living == 0) rows[row].gauges = member->subject->gauges();
  return rows;
}

std::optional<Census::Clock::time_point> Census::wakes_at() const {
  std::optional<Clock::time_point> at;
  for (const auto& [path, member] : members_)
    if (member.settles && (!at || *member.settles < *at)) at = member.settles;
  return at;
}

void Census::attend(std::span<const pollfd>) {
  const auto now = now_();
  for (auto& [path, member] : members_) {
    if (!member.settles) continue;
    if (now >= *member.settles || told_end_of(member)) settle(member);
  }
}

}  // namespace oomrec::tools::service
