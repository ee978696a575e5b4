#include "tools/service/ship/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "common/bundle/retention.h"
#include "tools/base/descriptor.h"
#include "tools/base/error.h"
#include "tools/base/foreign_file.h"
#include "tools/base/output_file.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/store/outcome.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMostGoneLines = 200;  // of bundles that are gone, before it is compacted
constexpr std::string_view kPlan = "plan", kEarlyRow = "early-row", kRow = "row", kRaw = "raw",
                           kUnreadable = "unreadable", kShipped = "shipped";

std::string plan_line(const std::string& bundle, std::string_view what, const Plan& plan) {
  return fmt::format("{} {} {} {} {} {}\n", bundle, what, plan.day, plan.stem, plan.raw,
                     plan.signature);
}
std::string raw_line(const std::string& bundle, std::uint64_t bytes) {
  return fmt::format("{} {} {}\n", bundle, kRaw, bytes);
}
std::string mark_line(const std::string& bundle, std::string_view mark) {
  return fmt::format("{} {}\n", bundle, mark);
}

// Another user of the directory could otherwise hold up what we ship, or claim that it has arrived.
bool is_own(const struct stat& file, const fs::path& directory) {
  struct stat status {};
  return file.st_uid == geteuid() ||
         (stat(directory.c_str(), &status) == 0 && file.st_uid == status.st_uid);
}

// The file, locked. It is another one if somebody has compacted it between opening and locking.
class LockedFile {
 public:
  explicit LockedFile(const fs::path& file) {
    constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    do {
      descriptor_ = open(file.c_str(), kFlags, 0600);
    } while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX) == 0 && !is_at(file));
  }

  // Begins a new line after one that a crash has cut. False with errno.
  bool append(std::string text) const {
    struct stat status {};
    char last = '\n';
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) return false;
    if (status.st_size > 0 && pread(descriptor_, &last, 1, status.st_size - 1) == 1 && last != '\n')
      text.insert(text.begin(), '\n');
    return write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
           fsync(descriptor_) == 0;
  }

  void touch() const { futimens(descriptor_, nullptr); }

 private:
  bool is_at(const fs::path& file) const {
    struct stat ours {
    }, named{};
    return fstat(descriptor_, &ours) == 0 && lstat(file.c_str(), &named) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
  }
  Descriptor descriptor_;
};

}  // namespace

std::string Plan::raw_key() const { return fmt::format("raw/day={}/{}.{}", day, stem, raw); }

Ledger::Ledger(fs::path directory) : directory_(std::move(directory)) { read(); }

void Ledger::read() {
  bundles_.clear();
  lines_ = 0;
  ForeignFile file{ForeignPath::in(directory_, bundle::kShippedFile)};
  if (!file.problem().empty() || !is_own(file.status(), directory_)) return;
  const std::string text = file.read_up_to(kMostBytes);
  for (const std::string_view line : split(text, '\n')) apply(line);
}

// Ignores what it does not understand: a line that a crash has cut, or one of a later version.
void Ledger::apply(std::string_view line) {
  const std::vector<std::string_view> words = split(line, ' ');
  if (words.size() < 2) return;
  ++lines_;
  const std::string_view what = words[1];
  const bool is_row = what == kRow || what == kEarlyRow;
  const bool has_plan = (is_row || what == kPlan) && words.size() == 6;
  if (!has_plan && what != kRaw && what != kUnreadable) return;
  Arrived& arrived = bundles_[std::string{words[0]}];
  if (has_plan) {
    // Two processes may have made one each: the first holds for both.
    if (!arrived.plan)
      arrived.plan = Plan{std::string{words[2]}, std::string{words[3]}, std::string{words[4]},
                          std::string{words[5]}};
    arrived.row = arrived.row || is_row;
    arrived.final_row = arrived.final_row || what == kRow;
  } else if (what == kRaw && words.size() == 3) {
    arrived.raw = true;
    arrived.raw_bytes = parse_number<std::uint64_t>(words[2]).value_or(0);
  } else if (what == kUnreadable) {
    arrived.unreadable = true;
  }
}

const Arrived& Ledger::of(const std::string& bundle) const {
  static const Arrived kNothing;
  const auto found = bundles_.find(bundle);
  return found == bundles_.end() ? kNothing : found->second;
}

void Ledger::begin() const {
  constexpr time_t kDay = time_t{24} * 3600;
  const fs::path file = directory_ / bundle::kShippedFile;
  struct stat status {};
  if (lstat(file.c_str(), &status) == 0 && status.st_mtim.tv_sec + kDay > time(nullptr)) return;
  LockedFile{file}.touch();
}

bool Ledger::add_row(const std::string& bundle, const Plan& plan, bool is_final) {
  const bool is_all = !plan.has_raw() || of(bundle).raw;
  return add(plan_line(bundle, is_final ? kRow : kEarlyRow, plan) +
             (is_all ? mark_line(bundle, kShipped) : ""));
}

bool Ledger::add_raw(const std::string& bundle, std::uint64_t bytes) {
  return add(raw_line(bundle, bytes) + mark_line(bundle, kShipped));
}

bool Ledger::add_unreadable(const std::string& bundle) {
  return add(mark_line(bundle, kUnreadable) + mark_line(bundle, kShipped));
}

std::optional<Plan> Ledger::add_plan(const std::string& bundle, const Plan& plan) {
  if (!add(plan_line(bundle, kPlan, plan))) return {};
  return of(bundle).plan.value_or(plan);
}

bool Ledger::add(const std::string& lines) {
  const fs::path file = directory_ / bundle::kShippedFile;
  const LockedFile locked{file};
  if (!locked.append(lines)) {
    remark(fmt::format("--ship: {} cannot be written: {}", printable(file.string()),
                       std::strerror(errno)));
    return false;
  }
  read();
  const std::string kept = compacted();
  const auto kept_lines = static_cast<std::size_t>(std::ranges::count(kept, '\n'));
  if (lines_ > kept_lines + kMostGoneLines) try {
      replace_file(directory_, bundle::kShippedFile, kept);
    } catch (const Error& error) {
      remark(fmt::format("--ship: {}", error.what()));  // it stays long
    }
  return true;
}

// A bundle that is gone still counts for the bounds of its day.
bool Ledger::is_kept(const std::string& bundle, const Arrived& arrived) const {
  std::error_code error;
  if (fs::exists(directory_ / bundle, error)) return true;
  const std::string today = time_text(bundles::realtime_now_ns());
  return arrived.plan && arrived.plan->has_raw() &&
         arrived.plan->day >= today.substr(0, today.find('T'));
}

std::string Ledger::compacted() const {
  std::string text;
  for (const auto& [bundle, arrived] : bundles_) {
    if (!is_kept(bundle, arrived)) continue;
    if (arrived.plan)
      text += plan_line(bundle,
                        arrived.final_row ? kRow
                        : arrived.row     ? kEarlyRow
                                          : kPlan,
                        *arrived.plan);
    if (arrived.raw) text += raw_line(bundle, arrived.raw_bytes);
    if (arrived.unreadable) text += mark_line(bundle, kUnreadable);
    if (arrived.unreadable || (arrived.row && !arrived.awaits_raw()))
      text += mark_line(bundle, kShipped);
  }
  return text;
}

}  // namespace oomrec::tools::service
