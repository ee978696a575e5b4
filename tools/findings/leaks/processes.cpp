#include "tools/findings/leaks/processes.h"

#include <algorithm>
#include <filesystem>

#include "tools/base/text.h"
#include "tools/bundles/opening/other_processes.h"
#include "tools/bundles/ranks/identity.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/print/other_processes.h"

namespace oomrec::tools::findings {
namespace {

namespace fs = std::filesystem;

std::string rank_text(const bundles::Source& source) {
  if (source.is_job()) return "all";
  const auto who = bundles::rank_of(source);
  return who ? std::to_string(who->rank) : std::string{};
}

std::string program_of(const recording::Recording& recording) {
  const std::vector<std::string> words = recording.arguments();
  return words.empty() ? std::string{} : printable(fs::path{words[0]}.filename().string());
}

ProcessLeaks row_of(const bundles::Source& source, Leaks leaks) {
  const auto pid = static_cast<std::uint64_t>(std::max(0, source.recording->header().pid));
  return {pid, rank_text(source), program_of(*source.recording), source.bundle.filename().string(),
          std::move(leaks)};
}

}  // namespace

std::vector<ProcessLeaks> process_leaks(const bundles::Source& source, const Leaks& own) {
  std::vector<ProcessLeaks> rows{row_of(source, own)};
  const auto add = [&](const bundles::Source& other) {
    recording::Stacks stacks{*other.recording, *other.locations,
                             recording::frames_of(*other.recording)};
    rows.push_back(
        row_of(other, leaks_of(*other.recording, stacks, *other.locations, until_of(other))));
  };
  if (source.is_job()) {
    bundles::for_each_rank(source, [&](const Json&, const bundles::Source& rank) { add(rank); });
  } else if (!source.bundle.empty()) {
    const Json company = print::related_processes(source);
    bundles::for_each_other_process(source, member(company, "processes"),
                                    [&](std::size_t, const bundles::Source& other) { add(other); });
  }
  std::stable_sort(rows.begin() + 1, rows.end(), [](const ProcessLeaks& a, const ProcessLeaks& b) {
    return a.leaks.bytes() > b.leaks.bytes();
  });
  return rows;
}

}  // namespace oomrec::tools::findings
