#include "tools/deaths/memory_statistics.h"

#include <algorithm>

#include "common/system/text.h"
#include "common/system/units.h"
#include "tools/base/text.h"

namespace oomrec::tools::deaths {
namespace {

struct Statistic {
  std::string_view name;
  std::uint64_t MemoryStatistics::*value;
};

constexpr Statistic kOfCgroup[] = {
    {"anon", &MemoryStatistics::anonymous},
    {"file", &MemoryStatistics::file},
    {"shmem", &MemoryStatistics::shared},
    {"slab", &MemoryStatistics::slab},
    {"kernel_stack", &MemoryStatistics::stacks},
    {"pagetables", &MemoryStatistics::page_tables},
    {"sec_pagetables", &MemoryStatistics::page_tables},
    {"sock", &MemoryStatistics::sockets},
    {"percpu", &MemoryStatistics::other_kernel},
    {"vmalloc", &MemoryStatistics::other_kernel},
    {"kernel", &MemoryStatistics::kernel},
    {"rss", &MemoryStatistics::anonymous},
    {"cache", &MemoryStatistics::file},
};

constexpr Statistic kOfMachine[] = {
    {"active_anon", &MemoryStatistics::anonymous},
    {"inactive_anon", &MemoryStatistics::anonymous},
    {"isolated_anon", &MemoryStatistics::anonymous},
    {"unevictable", &MemoryStatistics::anonymous},
    {"active_file", &MemoryStatistics::file},
    {"inactive_file", &MemoryStatistics::file},
    {"isolated_file", &MemoryStatistics::file},
    {"shmem", &MemoryStatistics::shared},
    {"slab_reclaimable", &MemoryStatistics::slab},
    {"slab_unreclaimable", &MemoryStatistics::slab},
    {"pagetables", &MemoryStatistics::page_tables},
    {"sec_pagetables", &MemoryStatistics::page_tables},
};

template <std::size_t N>
void add(MemoryStatistics& to, const Statistic (&table)[N], std::string_view name,
         std::uint64_t bytes) {
  for (const Statistic& row : table)
    if (row.name == name) to.*row.value += bytes;
}

// Calls use(name, value) for each "name:value" of a line.
template <class Use>
void for_each_pair(std::string_view line, Use&& use) {
  for (const std::string_view word : split(line, ' ')) {
    const std::size_t colon = word.find(':');
    if (colon != word.npos) use(word.substr(0, colon), word.substr(colon + 1));
  }
}

}  // namespace

std::uint64_t MemoryStatistics::all_kernel() const {
  const std::uint64_t parts = stacks + page_tables + other_kernel;
  const std::uint64_t counted = kernel > slab ? kernel - slab : 0;
  return std::max(parts, counted) + sockets;
}

bool StatisticsReader::read(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == line.npos) return false;
  const auto bytes = parse_number<std::uint64_t>(line.substr(blank + 1));
  if (!bytes) return false;
  constexpr std::string_view kTotal = "total_";
  std::string_view name = line.substr(0, blank);
  if (name.starts_with(kTotal)) {
    name.remove_prefix(kTotal.size());
    if (!has_totals_) found_ = {};
    has_totals_ = true;
  }
  add(found_, kOfCgroup, name, *bytes);
  return true;
}

void StatisticsReader::read_old(std::string_view line) {
  for_each_pair(line, [&](std::string_view name, std::string_view value) {
    if (value.ends_with("KB")) add(found_, kOfCgroup, name, system::number_in(value) * kKiB);
  });
}

void MachineStatisticsReader::read(std::string_view line) {
  std::string_view rest = line;
  if (const auto count = take_number<std::uint64_t>(rest)) {
    if (rest == " pages RAM") pages_ = *count;
    if (rest == " pages reserved") reserved_pages_ = *count;
    return;
  }
  // A node's or a zone's line: all it adds to the machine's block.
  constexpr std::string_view kStacks = " kernel_stack:";
  if (line.starts_with("Node ")) {
    if (const std::size_t at = line.find(kStacks); at != line.npos)
      stack_bytes_ += system::number_in(line.substr(at + kStacks.size())) * kKiB;
    return;
  }
  for_each_pair(line, [&](std::string_view name, std::string_view value) {
    const auto pages = parse_number<std::uint64_t>(value);
    if (!pages) return;
    if (name == "free") free_pages_ = *pages;
    add(found_pages_, kOfMachine, name, *pages);
  });
}

MemoryStatistics MachineStatisticsReader::found(std::uint64_t page_bytes) const {
  MemoryStatistics found = found_pages_;
  for (const auto field :
       {&MemoryStatistics::anonymous, &MemoryStatistics::file, &MemoryStatistics::shared,
        &MemoryStatistics::slab, &MemoryStatistics::page_tables})
    found.*field *= page_bytes;
  found.stacks = stack_bytes_;
  // The kernel lists pages of shmem with the anonymous ones, and counts them as page cache.
  found.anonymous -= std::min(found.anonymous, found.shared);
  found.file += found.shared;
  return found;
}

std::uint64_t MachineStatisticsReader::ram_pages() const {
  return pages_ > reserved_pages_ ? pages_ - reserved_pages_ : 0;
}

std::uint64_t MachineStatisticsReader::used_pages() const {
  return ram_pages() - std::min(ram_pages(), free_pages_);
}

}  // namespace oomrec::tools::deaths
