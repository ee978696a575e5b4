#include "tools/leaks/processes.h"

#include <algorithm>
#include <filesystem>

#include "tools/bundles/other_processes.h"
#include "tools/print/company.h"
#include "tools/ranks/identity.h"
#include "tools/ranks/merged.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

namespace fs = std::filesystem;

std::string rank_text(const Source& source) {
  if (source.is_job()) return "all";
  const auto who = rank_of(source);
  return who ? std::to_string(who->rank) : std::string{};
}

std::string program_of(const Recording& recording) {
  const std::vector<std::string> words = recording.arguments();
  return words.empty() ? std::string{} : printable(fs::path{words[0]}.filename().string());
}

ProcessLeaks row_of(const Source& source, Leaks leaks) {
  const auto pid = static_cast<std::uint64_t>(std::max(0, source.recording->header().pid));
  return {pid, rank_text(source), program_of(*source.recording), source.bundle.filename().string(),
          std::move(leaks)};
}

}  // namespace

std::vector<ProcessLeaks> process_leaks(const Source& source, const Leaks& own) {
  std::vector<ProcessLeaks> rows{row_of(source, own)};
  const auto add = [&](const Source& other) {
    Stacks stacks{*other.recording, *other.places};
    rows.push_back(row_of(other, leaks_of(*other.recording, stacks, *other.places)));
  };
  if (source.is_job()) {
    for_each_rank(source, [&](const Json&, const Source& rank) { add(rank); });
  } else if (!source.bundle.empty()) {
    const Json company = company_of(source);
    for_each_other_process(source, member(company, "processes"),
                           [&](std::size_t, const Source& other) { add(other); });
  }
  std::stable_sort(rows.begin() + 1, rows.end(), [](const ProcessLeaks& a, const ProcessLeaks& b) {
    return a.leaks.bytes() > b.leaks.bytes();
  });
  return rows;
}

}  // namespace oomrec::tools
