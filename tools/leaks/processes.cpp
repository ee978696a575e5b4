#include "tools/leaks/processes.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "tools/bundles/other_processes.h"
#include "tools/print/company.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

namespace fs = std::filesystem;

std::string rank_in(const fs::path& bundle) {
  constexpr std::array<std::string_view, 3> kVariables = {"RANK", "OMPI_COMM_WORLD_RANK",
                                                          "SLURM_PROCID"};
  if (bundle.empty()) return {};
  const Json environment = read_json(bundle / "environment.json");
  for (const std::string_view name : kVariables)
    if (const auto rank = text_of(member(environment, "environment"), name))
      return printable(*rank);
  return {};
}

std::string program_of(const Recording& recording) {
  const std::vector<std::string> words = recording.arguments();
  return words.empty() ? std::string{} : printable(fs::path{words[0]}.filename().string());
}

ProcessLeaks row_of(const Source& source, Leaks leaks) {
  const auto pid = static_cast<std::uint64_t>(std::max(0, source.recording->header().pid));
  return {pid, rank_in(source.bundle), program_of(*source.recording),
          source.bundle.filename().string(), std::move(leaks)};
}

}  // namespace

std::vector<ProcessLeaks> process_leaks(const Source& source, const Leaks& own) {
  std::vector<ProcessLeaks> rows{row_of(source, own)};
  if (source.bundle.empty()) return rows;
  const Json company = company_of(source);
  for_each_other_process(
      source, member(company, "processes"), [&](std::size_t, const Source& other) {
        Stacks stacks{*other.recording, *other.places};
        rows.push_back(row_of(other, leaks_of(*other.recording, stacks, *other.places)));
      });
  std::stable_sort(rows.begin() + 1, rows.end(), [](const ProcessLeaks& a, const ProcessLeaks& b) {
    return a.leaks.bytes() > b.leaks.bytes();
  });
  return rows;
}

}  // namespace oomrec::tools
