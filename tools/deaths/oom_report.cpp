#include "tools/deaths/oom_report.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/machine/page.h"
#include "common/system/text.h"
#include "common/system/units.h"
#include "tools/base/text.h"

namespace oomrec::tools::deaths {
namespace {

// "65536kB" behind `word`.
std::optional<std::uint64_t> kib_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + word.size());
  const auto number = take_number<std::uint64_t>(text);
  return number && text.starts_with("kB") ? std::optional{*number * kKiB} : std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words = split(text, ' ');
  std::erase_if(words, [](std::string_view word) { return word.empty(); });
  return words;
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

// In which `pages` are nearest to `bytes`.
std::uint64_t page_bytes_by(std::uint64_t pages, std::uint64_t bytes) {
  std::uint64_t best = machine::page_bytes();
  if (pages == 0 || bytes == 0) return best;
  for (const std::uint64_t size : {4 * kKiB, 16 * kKiB, 64 * kKiB})
    if (distance(pages * size, bytes) < distance(pages * best, bytes)) best = size;
  return best;
}

constexpr std::uint64_t ResidentMemory::*kResidentFields[] = {
    &ResidentMemory::rss_bytes, &ResidentMemory::anonymous_bytes, &ResidentMemory::file_bytes,
    &ResidentMemory::shared_bytes};

}  // namespace

const ReportedProcess* OomReport::process(std::uint64_t pid) const {
  const auto found = std::ranges::find_if(
      processes, [&](const ReportedProcess& row) { return row.pid == pid || row.thread == pid; });
  return found == processes.end() ? nullptr : &*found;
}

OomReport OomReportReader::take(std::uint64_t pid, std::uint64_t rss_bytes) {
  OomReport report = std::move(report_);
  const ReportedProcess* const killed = report.process(pid);
  const std::uint64_t page_bytes =
      page_bytes_by(killed != nullptr ? killed->rss_bytes : 0, rss_bytes);
  for (ReportedProcess& process : report.processes)
    for (const auto field : kResidentFields) process.*field *= page_bytes;
  if (report.of_machine) {
    report.limit_bytes = machine_.ram_pages() * page_bytes;
    report.usage_bytes = machine_.used_pages() * page_bytes;
    report.statistics = machine_.found(page_bytes);
  } else {
    report.statistics = statistics_.found();
    report.statistics.kernel = std::max(report.statistics.kernel, kernel_bytes_);
  }
  *this = {};
  return report;
}

void OomReportReader::read(std::string_view text) {
  if (section_ == Section::statistics && statistics_.read(text)) return;
  if (section_ == Section::tasks && read_task(text)) return;
  if (text.find(" invoked oom-killer: ") != text.npos) {
    *this = {};
  } else if (text.starts_with("memory: usage ") || text.starts_with("kmem: usage ") ||
             text.starts_with("memory+swap: usage ")) {
    read_usage(text);
  } else if (text.starts_with("Memory cgroup stats")) {
    text.ends_with(':') ? void(section_ = Section::statistics) : statistics_.read_old(text);
  } else if (text.starts_with("[ pid ]") || text.starts_with("[  pid  ]")) {
    begin_table(text);
  } else if (text.starts_with("Mem-Info:")) {
    report_.is_mixed |= report_.of_machine || report_.usage_bytes != 0;
    report_.of_machine = true;
  } else if (report_.of_machine) {
    machine_.read(text);
  }
}

// "memory: usage 65536kB, limit 65536kB, failcnt 21", "kmem: usage …", in version 1 also
// "memory+swap: usage …", whose limit may be the one that was reached.
void OomReportReader::read_usage(std::string_view text) {
  const auto usage = kib_after(text, "usage ");
  if (!usage) return;
  if (text.starts_with("kmem:")) {
    kernel_bytes_ = *usage;
    return;
  }
  const std::uint64_t limit = kib_after(text, "limit ").value_or(0);
  if (text.starts_with("memory+swap:")) {
    const auto is_reached = [](std::uint64_t used, std::uint64_t at) {
      return used >= at - at / 100;
    };
    if (is_reached(report_.usage_bytes, report_.limit_bytes) || !is_reached(*usage, limit)) return;
  } else {
    report_.is_mixed |= report_.usage_bytes != 0;
  }
  report_.usage_bytes = *usage;
  report_.limit_bytes = limit;
}

// "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents
// oom_score_adj name": the columns between `rss` and `name` have changed with the kernels.
void OomReportReader::begin_table(std::string_view text) {
  report_.is_mixed |= !report_.processes.empty();
  columns_ = {"pid"};
  for (const std::string_view word : words_of(text.substr(text.find(']') + 1)))
    columns_.emplace_back(word);
  section_ = Section::tasks;
}

// "[  14701]     0 14701    22598    21787 … python3"
bool OomReportReader::read_task(std::string_view text) {
  const std::size_t end = text.find(']');
  if (!text.starts_with('[') || end == text.npos) return false;
  ReportedProcess process;
  std::string_view rest = text.substr(1, end - 1);
  const auto next_word = [](std::string_view& from) {
    from.remove_prefix(std::min(from.find_first_not_of(' '), from.size()));
    const std::string_view word = from.substr(0, from.find(' '));
    from.remove_prefix(word.size());
    return word;
  };
  const auto thread = parse_number<std::uint64_t>(next_word(rest));
  if (!thread) return false;
  process.pid = process.thread = *thread;
  rest = text.substr(end + 1);
  for (std::size_t i = 1; i + 1 < columns_.size(); ++i) {
    const std::string& column = columns_[i];
    const std::string_view word = next_word(rest);
    const std::uint64_t number = system::number_in(word);
    if (column == "tgid") process.pid = number;
    // In pages, until the report is taken.
    if (column == "rss") process.rss_bytes = number;
    if (column == "rss_anon") process.anonymous_bytes = number;
    if (column == "rss_file") process.file_bytes = number;
    if (column == "rss_shmem") process.shared_bytes = number;
  }
  rest.remove_prefix(std::min<std::size_t>(rest.size(), 1));
  process.name = rest;
  report_.processes.push_back(std::move(process));
  return true;
}

}  // namespace oomrec::tools::deaths
