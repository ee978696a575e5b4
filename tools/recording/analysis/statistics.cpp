#include "tools/recording/analysis/statistics.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "common/names/library_functions.h"
#include "common/text/own_code.h"
#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::recording {
namespace {

using session::TableId;

// Libraries that allocate on behalf of their callers.
bool is_plumbing(const Location& location, const Locations& locations) {
  static constexpr std::array<std::string_view, 9> kLibraries = {
      "libc.so",     "libc-2",      "libstdc++",   "libc++",   "ld-linux",
      "libjemalloc", "libtcmalloc", "libmimalloc", "liboomrec"};
  const std::string& path = locations.module_path(location);
  const std::string_view name = text::base_name(path);
  return std::ranges::any_of(kLibraries,
                             [&](std::string_view word) { return name.starts_with(word); });
}

// Functions without a slot in the lanes.
void add_device_apis(const Recording& recording, Statistics& statistics) {
  const session::View& view = recording.view();
  session::Tally tally{};
  for (std::uint64_t entry = kHostApiCount + 1; entry < view.count(TableId::api_tallies); ++entry) {
    if (view.read(TableId::api_tallies, entry, tally) && tally.count != 0)
      statistics.apis.push_back({static_cast<Api>(entry - 1), tally.count, tally.bytes});
  }
}

void add_sizes_and_apis(const Recording& recording, Statistics& statistics) {
  std::array<SizeBucket, session::kSizeBuckets> sizes{};
  std::array<ApiFigures, kHostApiCount> apis{};
  for (const auto& lane : session::entries<session::Lane>(recording.view(), TableId::lanes)) {
    for (std::size_t bucket = 0; bucket < sizes.size(); ++bucket) {
      sizes[bucket].count += lane.sizes[bucket].count;
      sizes[bucket].bytes += lane.sizes[bucket].bytes;
    }
    for (std::size_t api = 0; api < apis.size(); ++api) {
      apis[api].count += lane.apis[api].count;
      apis[api].bytes += lane.apis[api].bytes;
    }
  }
  for (std::size_t bucket = 0; bucket < sizes.size(); ++bucket) {
    sizes[bucket].from = bucket == 0 ? 0 : std::uint64_t{1} << (bucket - 1);
    sizes[bucket].to = std::uint64_t{1} << bucket;
  }
  const auto used = [](const SizeBucket& bucket) { return bucket.count != 0; };
  const auto first = std::ranges::find_if(sizes, used);
  const auto last = std::find_if(sizes.rbegin(), sizes.rend(), used).base();
  if (first < last) statistics.sizes.assign(first, last);
  for (std::size_t api = 0; api < apis.size(); ++api) {
    apis[api].api = static_cast<Api>(api);
    if (apis[api].count != 0) statistics.apis.push_back(apis[api]);
  }
  add_device_apis(recording, statistics);
  std::ranges::sort(statistics.apis, std::ranges::greater{}, &ApiFigures::count);
}

}  // namespace

Relevance relevance_of(const Location& location, const Locations& locations) {
  if (location.kind == Location::Kind::python) {
    return text::is_programs_own(location.file) ? Relevance::own_python_line
                                                : Relevance::python_line;
  }
  if (location.script && !location.file.empty())
    return text::is_programs_own_script(location.file) ? Relevance::own_python_line
                                                       : Relevance::python_line;
  const bool is_relevant = !location.function.empty() && location.function != kCutStack &&
                           !is_library_function(location) &&
                           !names::is_allocator_function(location.function) &&
                           !is_plumbing(location, locations);
  return is_relevant ? Relevance::function : Relevance::little;
}

std::vector<LocationId> subjects_of(const Stacks& stacks, const Locations& locations) {
  std::vector<Relevance> relevance(locations.size());
  for (LocationId id = 1; id < relevance.size(); ++id)
    relevance[id] = relevance_of(locations[id], locations);
  std::vector<LocationId> subjects(stacks.size());
  for (StackId stack = 1; stack < subjects.size(); ++stack) {
    const LocationId innermost = stacks.innermost(stack);
    const LocationId outer = subjects[stacks.parent(stack)];
    subjects[stack] = relevance[innermost] >= relevance[outer] ? innermost : outer;
  }
  return subjects;
}

Statistics statistics_of(const Recording& recording, Stacks& stacks, const Locations& locations) {
  Statistics statistics;
  statistics.estimated = recording.estimated();
  statistics.peak_bytes = recording.peak_bytes();
  for (const Space space : spaces_that_add_up()) {
    const SpaceTotals totals = recording.totals(space);
    statistics.total_allocated_bytes += totals.allocated_bytes;
    statistics.total_allocations += totals.allocated_count;
    statistics.live_bytes += totals.live_bytes;
    statistics.live_count += totals.live_count;
  }
  std::unordered_map<LocationId, FunctionFigures> functions;
  std::vector<HolderFigures> holders = recording.holders();
  // What was mapped for Python's pool is counted by its objects.
  std::erase_if(holders, [](const HolderFigures& holder) {
    return !is_additive(holder.space) || holder.is_object_pool;
  });
  const std::vector<StackFigures> rows = merged(holders, stacks, At::ever);
  const std::vector<LocationId> subjects = subjects_of(stacks, locations);
  for (const StackFigures& row : rows) {
    const LocationId location = subjects[stacks.reduced(row.stack)];
    FunctionFigures& function = functions[location];
    function.location = location;
    function.bytes += row.bytes;
    function.count += row.count;
  }
  for (const auto& [location, function] : functions) statistics.by_bytes.push_back(function);
  statistics.by_count = statistics.by_bytes;
  const auto by = [](std::uint64_t FunctionFigures::*figure) {
    return [figure](const FunctionFigures& a, const FunctionFigures& b) {
      return a.*figure != b.*figure ? a.*figure > b.*figure : a.location < b.location;
    };
  };
  std::ranges::sort(statistics.by_bytes, by(&FunctionFigures::bytes));
  std::ranges::sort(statistics.by_count, by(&FunctionFigures::count));
  add_sizes_and_apis(recording, statistics);
  return statistics;
}

std::string allocator_of(const Recording& recording) {
  constexpr std::array<std::string_view, 8> kOthers = {
      "jemalloc", "tcmalloc", "mimalloc", "snmalloc", "scudo", "tbbmalloc", "rpmalloc", "hoard"};
  const auto known_in = [&](std::string_view path) {
    const std::string_view file = text::base_name(path);
    const auto name = std::ranges::find_if(
        kOthers, [&](std::string_view one) { return file.find(one) != file.npos; });
    return name != kOthers.end() ? *name : std::string_view{};
  };
  if (const std::string file = recording.text(recording.header().allocator); !file.empty()) {
    if (file.starts_with("libc.so") || file.starts_with("libc-")) return "glibc";
    const std::string_view known = known_in(file);
    return known.empty() ? printable(file) : std::string{known};
  }
  for (const auto& module :
       session::entries<session::Module>(recording.view(), session::TableId::modules)) {
    const std::string path = recording.text(module.path);
    if (const std::string_view known = known_in(path); !known.empty()) return std::string{known};
  }
  return "glibc";
}

}  // namespace oomrec::tools::recording
