#include "tools/sections/resident_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "common/facts/account.h"
#include "common/facts/environment.h"
#include "common/residency/rows.h"
#include "tools/base/fact_reader.h"
#include "tools/base/text.h"
#include "tools/recording/analysis/statistics.h"

namespace oomrec::tools::sections {
namespace {

using session::ResidentKind;

constexpr ResidentKindName kKinds[] = {
    {ResidentKind::heap, "heap", "the heap", "heap"},
    {ResidentKind::held, "held", "mappings and large blocks that have holders",
     "mappings and large blocks"},
    {ResidentKind::unheld, "unheld",
     "anonymous memory without a holder: no hook saw who asked for it",
     "anonymous, without a holder"},
    {ResidentKind::stacks, "stacks", "stacks of threads", "stacks"},
    {ResidentKind::written_files, "written_file_pages",
     "static variables, and what it has written of private file mappings",
     "variables and written file pages"},
    {ResidentKind::files, "file_pages",
     "pages of files, which the kernel takes back when it needs them",
     "pages of files, reclaimable"},
    {ResidentKind::shared, "shared", "shared memory: tmpfs, memfd, System V", "shared memory"},
    {ResidentKind::recorder, "recorder", "the recorder", "recorder"},
};
static_assert(std::size(kKinds) == session::kResidentKinds);

// The kinds of a look, the largest first, without empty ones.
std::vector<std::pair<ResidentKindName, std::uint64_t>> parts_of(
    const recording::ResidencyTotals& look) {
  std::vector<std::pair<ResidentKindName, std::uint64_t>> parts;
  for (const ResidentKindName& kind : kKinds)
    if (const std::uint64_t bytes = look.kind_bytes[static_cast<std::size_t>(kind.kind)])
      parts.emplace_back(kind, bytes);
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

// Of a process that has ended: between the look and the last sign of life.
double seconds_before_end(const recording::Recording& recording) {
  const std::uint64_t end = recording.end_ns(), look = recording.residency().time_ns;
  return static_cast<double>(end - std::min(end, look)) / 1e9;
}

std::uint64_t bytes_of(const recording::ResidencyTotals& look, ResidentKind kind) {
  return look.kind_bytes[static_cast<std::size_t>(kind)];
}

// 0 of a look that ran out of time: what it did not reach is of any kind.
std::uint64_t swapped_bytes(const recording::ResidencyTotals& look) {
  const std::uint64_t sum = resident_bytes(look);
  return look.is_partial ? 0 : look.touched_bytes - std::min(look.touched_bytes, sum);
}

// Of the heap at the look, what small blocks take up that are in use.
std::uint64_t small_block_bytes(const recording::Recording& recording) {
  const recording::ResidencyTotals& look = recording.residency();
  const recording::SpaceTotals live = recording.totals(Space::heap);
  return std::min(bytes_of(look, ResidentKind::heap),
                  live.live_bytes - std::min(live.live_bytes, look.large_block_bytes) +
                      residency::header_bytes(recording.view()));
}

// "the heap (jemalloc): 97.7 MiB in small blocks, the rest kept free"
std::string heap_text(const recording::Recording& recording) {
  const std::string allocator = recording::allocator_of(recording);
  return fmt::format("the heap{}: {} in small blocks, the rest kept free",
                     allocator == "glibc" ? "" : fmt::format(" ({})", allocator),
                     size_text(small_block_bytes(recording)));
}

}  // namespace

std::string time_of_look(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  if (!recording.has_residency()) return {};
  if (source.is_live()) return "now";
  const double seconds = seconds_before_end(recording);
  return seconds < 0.05
             ? "at the last look"
             : fmt::format("at the last look, {} before the end", duration_text(seconds));
}

std::span<const ResidentKindName> resident_kinds() { return kKinds; }

std::uint64_t resident_bytes(const recording::ResidencyTotals& look) {
  return std::accumulate(look.kind_bytes.begin(), look.kind_bytes.end(), std::uint64_t{0});
}

std::string resident_line(const recording::Recording& recording) {
  constexpr std::size_t kMostParts = 3;
  constexpr double kNotable = 0.02;
  if (!recording.has_residency()) return {};
  const recording::ResidencyTotals& look = recording.residency();
  const std::uint64_t sum = resident_bytes(look);
  std::string text = fmt::format("resident {}: ", size_text(sum));
  std::uint64_t others = sum;
  std::size_t shown = 0;
  for (const auto& [kind, bytes] : parts_of(look)) {
    if (shown == kMostParts || share_of(bytes, sum) < kNotable) break;
    text += fmt::format("{}{} {}", shown++ == 0 ? "" : "; ", kind.brief, size_text(bytes));
    others -= bytes;
  }
  return others == 0 ? text : text + fmt::format("; other {}", size_text(others));
}

std::string resident_memory_text(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  if (!recording.has_residency()) return {};
  const recording::ResidencyTotals& look = recording.residency();
  const std::uint64_t sum = resident_bytes(look);
  std::string text;
  for (const auto& [kind, bytes] : parts_of(look)) {
    const bool is_heap = kind.kind == ResidentKind::heap;
    text += fmt::format("  {:>10}  {}\n", size_text(bytes),
                        is_heap ? heap_text(recording) : std::string{kind.name});
  }
  text += fmt::format("  {:>10}  resident{}\n", size_text(sum),
                      look.is_partial ? ", as far as there was time to look" : "");
  if (const std::uint64_t swapped = swapped_bytes(look))
    text += fmt::format("  {:>10}  more in swap\n", size_text(swapped));
  return text;
}

std::vector<UnheldPart> unheld_parts(const bundles::Source& source) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
  const recording::Recording& recording = *source.recording;
  std::vector<UnheldPart> parts;
  if (recording.weight() != recording::Weight::resident) return parts;
  const auto of_kind = [&](ResidentKind kind) { return bytes_of(recording.residency(), kind); };
  parts.push_back({heap_without_holder_bytes(recording), "heap memory without a holder",
                   "freed and kept by the allocator (oomrec fragmentation), or allocated by a "
                   "library whose calls are not observed"});
  // An interpreter's own heap is in the pool's holder.
  const bool has_own_heap = recording.header().python.source == session::ObjectSource::own_heap;
  parts.push_back(
      {(has_own_heap ? 0 : of_kind(ResidentKind::unheld)) + recording.unexplained_bytes(),
       "anonymous memory without a holder",
       "from an allocator that asks the kernel itself, or a library whose calls are "
       "not observed"});
  const session::StringId note = recording.header().heap_note;
  if (note != 0)
    for (UnheldPart& part : parts) part.reason += fmt::format(" ({})", recording.text(note));
  parts.push_back({of_kind(ResidentKind::stacks), "stacks of threads",
                   "local variables of their functions, or a deep recursion"});
  parts.push_back({recording.residency().variable_bytes, "static variables",
                   "arrays and the like that are part of the program itself"});
  parts.push_back({unmapped_shared_bytes(source), "shared memory and tmpfs that it does not map",
                   "files in /dev/shm or another tmpfs and memfds, until they are deleted or "
                   "closed, or memory that other processes share"});
  std::erase_if(parts, [](const UnheldPart& part) { return part.bytes < kLeast; });
  std::ranges::sort(parts, std::ranges::greater{}, &UnheldPart::bytes);
  return parts;
}

std::uint64_t heap_without_holder_bytes(const recording::Recording& recording) {
  return bytes_of(recording.residency(), ResidentKind::heap) - small_block_bytes(recording);
}

std::uint64_t unmapped_shared_bytes(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  const session::CgroupAccount& account = recording.header().account;
  if (account.is_at_kill()) {
    const bool of_cgroup =
        account.scope == static_cast<std::uint32_t>(session::AccountScope::cgroup);
    return of_cgroup
               ? account.shared_bytes - std::min(account.shared_bytes, account.own_shared_bytes)
               : 0;
  }
  if (source.trigger() != Trigger::near_limit || source.bundle.empty() ||
      !recording.has_residency())
    return 0;
  const Json environment = read_json(source.bundle, "environment.json");
  const std::uint64_t shared =
      number_of(member(environment, "cgroup"), facts::kSharedKey).value_or(0);
  const std::uint64_t mapped = bytes_of(recording.residency(), ResidentKind::shared);
  return shared - std::min(shared, mapped);
}

std::string file_pages_text(const bundles::Source& source) {
  constexpr double kNotable = 0.25;
  const recording::ResidencyTotals& look = source.recording->residency();
  const std::uint64_t resident = resident_bytes(look);
  const std::uint64_t of_files = bytes_of(look, ResidentKind::files);
  if (share_of(of_files, resident) < kNotable) return {};
  return fmt::format(
      "{} of the {} that are resident are pages of files, which the kernel takes back when it "
      "needs "
      "them: that they grow is no leak.",
      size_text(of_files), size_text(resident));
}

Json resident_memory_json(const recording::Recording& recording, Process process) {
  if (!recording.has_residency()) return nullptr;
  const recording::ResidencyTotals& look = recording.residency();
  const std::uint64_t sum = resident_bytes(look);
  Json kinds = Json::object();
  for (const ResidentKindName& kind : kKinds)
    kinds[std::string{kind.key}] = look.kind_bytes[static_cast<std::size_t>(kind.kind)];
  return {{"seconds_before_end", process == Process::runs ? 0 : seconds_before_end(recording)},
          {"complete", !look.is_partial},
          {"resident_bytes", sum},
          {"swapped_bytes", swapped_bytes(look)},
          {"untouched_bytes", look.untouched_bytes},
          {"kinds", kinds},
          {"small_block_bytes", small_block_bytes(recording)}};
}

Json resident_memory_json(const bundles::Source& source) {
  return resident_memory_json(*source.recording, source.is_live() ? Process::runs : Process::ended);
}

namespace {

using session::CgroupAccount;

// From the evidence that was just collected, else from the recording.
const CgroupAccount& account_of(const bundles::Source& source) {
  const bool examined_now = source.ending && source.ending->killed;
  return examined_now ? source.ending->evidence.account : source.recording->header().account;
}

struct PartLines {
  std::string text;
  void field(std::string_view, std::uint64_t bytes, std::string_view name) {
    if (bytes != 0) text += fmt::format("  {:>10}  {}\n", size_text(bytes), name);
  }
};

}  // namespace

Json cgroup_account_json(const bundles::Source& source) { return fact_json(account_of(source)); }

std::string cgroup_account_text(const bundles::Source& source) {
  const CgroupAccount& account = account_of(source);
  if (!facts::Section<CgroupAccount>::is_known(account)) return {};
  PartLines parts;
  facts::Section<CgroupAccount>::describe_parts(parts, account);
  std::string text = parts.text;
  text += fmt::format("  {:>10}  in use, of {}\n", size_text(account.usage_bytes),
                      size_text(account.limit_bytes));
  if (account.largest_pid != 0)
    text += fmt::format("  the largest other process: {} ({}), {} resident\n", account.largest_pid,
                        printable(facts::Name{account.largest_name}.view()),
                        size_text(account.largest_bytes));
  return text;
}

}  // namespace oomrec::tools::sections
