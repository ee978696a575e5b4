#include "tools/views/top/figures.h"

#include <array>
#include <cmath>

#include "tools/base/text.h"
#include "tools/views/top/row_text.h"

namespace oomrec::tools::views {
namespace {

// clang-format off
constexpr auto kFigures = std::to_array<Figure>({
    {SortBy::own, 11, 0, "own_bytes",
     [](const Row& row) { return static_cast<double>(row.weight); },
     [](const Row& row) { return Span{size_text(row.weight), Colour::yellow}; },
     [](const Row& row) { return Json(row.own); }},
    {SortBy::total, 11, 55, "total_bytes",
     [](const Row& row) { return static_cast<double>(row.total); },
     [](const Row& row) { return Span{size_text(row.total)}; },
     [](const Row& row) { return Json(row.total); }},
    {SortBy::count, 12, 80, "count",
     [](const Row& row) { return static_cast<double>(row.count); },
     [](const Row& row) { return Span{count_text(row.count), Colour::dim}; },
     [](const Row& row) { return Json(row.count); }},
    {SortBy::growth, 13, 70, "growth_bytes_per_s",
     [](const Row& row) { return row.growth; },
     [](const Row& row) { return Span{growth_text(row.growth), row.growth > 0 ? Colour::red : Colour::green}; },
     [](const Row& row) { return Json(std::llround(row.growth)); }},
});
// clang-format on

static_assert(
    [] {
      for (std::size_t i = 0; i < kFigures.size(); ++i)
        if (kFigures[i].sort != static_cast<SortBy>(i)) return false;
      return kFigures.size() == std::size(kSortNames);
    }(),
    "one row for each SortBy, in its order");

}  // namespace

std::span<const Figure> figures() { return kFigures; }

}  // namespace oomrec::tools::views
