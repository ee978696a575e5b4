#include "tools/commands/object_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/base/text.h"

namespace oomrec::tools::commands {
namespace {

constexpr std::size_t kRows = 20;

void print_row(std::uint64_t bytes, double share, std::uint64_t count, const std::string& type) {
  fmt::print("{:>11}  {:>7}  {:>11}  {}\n", size_text(bytes), percent_text(share),
             count_text(count), type);
}

}  // namespace

void print_objects(const recording::ObjectCounts& counts) {
  fmt::print("\n{} objects of {} types, which Python's garbage collector tracks: {}\n",
             count_text(counts.objects), count_text(counts.types), size_text(counts.bytes));
  fmt::print("      bytes    share        count  type\n");
  const std::size_t shown = std::min(counts.rows.size(), kRows);
  std::uint64_t objects = counts.objects, bytes = counts.bytes;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& row = counts.rows[i];
    print_row(row.bytes, share_of(row.bytes, counts.bytes), row.count, row.type);
    objects -= row.count;
    bytes -= row.bytes;
  }
  if (objects != 0)
    print_row(bytes, share_of(bytes, counts.bytes), objects,
              fmt::format("({} other types)", count_text(counts.types - shown)));
  fmt::print(
      "  bytes of the objects themselves, as sys.getsizeof; the collector tracks no str, bytes, "
      "int "
      "or float\n");
  if (counts.is_partial)
    fmt::print("  not all: counting ended after {:.1f} s\n",
               static_cast<double>(counts.took_ns) / 1e9);
  if (counts.interpreters > 1)
    fmt::print("  of the main interpreter; {} more are not counted\n", counts.interpreters - 1);
}

Json objects_json(const recording::ObjectCounts& counts) {
  Json rows = Json::array();
  for (const auto& row : counts.rows)
    rows.push_back({{"type", row.type}, {"count", row.count}, {"bytes", row.bytes}});
  return {{"count", counts.objects},
          {"bytes", counts.bytes},
          {"types", counts.types},
          {"other_interpreters", counts.interpreters > 1 ? counts.interpreters - 1 : 0},
          {"took_ns", counts.took_ns},
          {"is_partial", counts.is_partial},
          {"rows", std::move(rows)}};
}

}  // namespace oomrec::tools::commands
