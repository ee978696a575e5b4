#include "tools/findings/diff/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tools/base/text.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/sections/holders.h"
#include "tools/sections/notes.h"

namespace oomrec::tools::findings {
namespace {

constexpr std::size_t kBarColumns = 20;

std::string growth_text(std::int64_t bytes) {
  const std::string size = size_text(static_cast<std::uint64_t>(std::llabs(bytes)));
  return bytes == 0 ? size : (bytes > 0 ? "+" : "-") + size;
}

Colour colour_of(std::int64_t growth) {
  return growth > 0 ? Colour::red : growth < 0 ? Colour::green : Colour::plain;
}

// A bar in proportion to the largest change on the page.
std::string bar(std::int64_t growth, std::int64_t largest) {
  if (largest == 0) return {};
  const double part = static_cast<double>(std::llabs(growth)) / static_cast<double>(largest);
  const auto length = static_cast<std::size_t>(std::lround(part * kBarColumns));
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += growth > 0 ? "▇" : "░";
  return text + std::string(kBarColumns - length, ' ');
}

template <class Row>
std::int64_t largest_change(const std::vector<Row>& rows) {
  std::int64_t largest = 0;
  for (const Row& row : rows)
    largest = std::max<std::int64_t>(largest, std::llabs(row.ranked_growth()));
  return largest;
}

enum class ByChance : std::uint8_t { leave_out, include };

ByChance by_chance_of(const DiffStyle& style) {
  return style.by_chance ? ByChance::include : ByChance::leave_out;
}

// The rows with the largest changes, sorted by growth.
template <class Row>
std::vector<const Row*> most_changed(const std::vector<Row>& rows, unsigned top,
                                     ByChance by_chance) {
  constexpr std::size_t kMost = 10;
  constexpr std::int64_t kLeastPart = 100;
  const std::int64_t least =
      top != 0 ? 1 : std::max<std::int64_t>(1, largest_change(rows) / kLeastPart);
  const std::size_t most = top != 0 ? top : kMost;
  std::vector<const Row*> chosen;
  for (const Row& row : rows) {
    if (std::llabs(row.ranked_growth()) < least) continue;
    if (by_chance == ByChance::include || !row.by_chance) chosen.push_back(&row);
  }
  if (chosen.size() <= most) return chosen;
  std::ranges::stable_sort(chosen, [](const Row* a, const Row* b) {
    return std::llabs(a->ranked_growth()) > std::llabs(b->ranked_growth());
  });
  chosen.resize(most);
  std::ranges::stable_sort(
      chosen, [](const Row* a, const Row* b) { return a->ranked_growth() > b->ranked_growth(); });
  return chosen;
}

template <class Row>
std::size_t changed(const std::vector<Row>& rows) {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const Row& row) { return row.ranked_growth() != 0; }));
}

Json amount_json(const Amount& amount) {
  return {{"bytes", amount.bytes}, {"count", amount.count}};
}

Json held_json(const Amount& amount) {
  Json json = amount_json(amount);
  json["resident_bytes"] = amount.resident_bytes;
  return json;
}

Json change_json(const Change& change) {
  return {{"change", change.word()},
          {"growth_bytes", change.growth()},
          {"resident_growth_bytes", change.resident_growth()},
          {"before", held_json(change.before)},
          {"after", held_json(change.after)},
          {"estimated", change.estimated},
          {"by_chance", change.by_chance}};
}

Json space_json(const SpaceChange& change) {
  return {{"change", change.word()},
          {"growth_bytes", change.growth()},
          {"before", amount_json(change.before)},
          {"after", amount_json(change.after)}};
}

Json growth_json(std::uint64_t before, std::uint64_t after) {
  return {{"before_bytes", before},
          {"after_bytes", after},
          {"growth_bytes", static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before)}};
}

std::string_view resident_word(const Change& change) {
  return change.is_of_resident && *change.resident_growth() != change.growth() ? " resident" : "";
}

// "8.0 MiB resident of 400.0 MiB in 1 block".
std::string side_text(const Amount& amount, bool is_of_resident) {
  return fmt::format("{} in {}",
                     sections::held_text(amount.bytes, amount.resident_bytes, is_of_resident),
                     plural(amount.count, "block", "blocks"));
}

std::filesystem::path path_of(const bundles::Source& source) {
  return source.bundle.empty() ? source.recording->path() : source.bundle;
}

Json side_json(const bundles::Source& source) {
  const session::Header& header = source.recording->header();
  return {{"source", path_of(source).string()},
          {"pid", header.pid},
          {"mode", name_of(source.recording->mode_now())},
          {"estimated", source.recording->estimated()},
          {"argv", source.recording->arguments()}};
}

}  // namespace

DiffPage::DiffPage(const bundles::Source& before, const bundles::Source& after, recording::At at,
                   std::optional<Space> only)
    : before_(before),
      after_(after),
      stacks_before_(*before.recording, *before.locations, recording::frames_of(*before.recording)),
      stacks_after_(*after.recording, *after.locations, recording::frames_of(*after.recording)),
      difference_(tools::findings::difference(
          {*before.recording, stacks_before_, *before.locations},
          {*after.recording, stacks_after_, *after.locations}, at, only)) {}

const recording::Location& DiffPage::location_of(const FunctionChange& change,
                                                 const recording::Locations*& locations) const {
  const bool is_after = change.location_after != 0;
  locations = is_after ? after_.locations.get() : before_.locations.get();
  return (*locations)[is_after ? change.location_after : change.location_before];
}

Json DiffPage::json(const DiffStyle& style) const {
  Json spaces = Json::object();
  for (const SpaceChange& change : difference_.spaces)
    spaces[std::string{name_of(change.space)}] = space_json(change);
  Json functions = Json::array();
  for (const FunctionChange* change :
       most_changed(difference_.functions, style.top, ByChance::include)) {
    const recording::Locations* locations = nullptr;
    const recording::Location& location = location_of(*change, locations);
    Json row{{"function", text_or_null(location.function)},
             {"file", text_or_null(location.file)},
             {"line", number_or_null(location.line)}};
    row.update(change_json(*change));
    functions.push_back(std::move(row));
  }
  Json stacks = Json::array();
  for (const StackChange* change : most_changed(difference_.stacks, style.top, ByChance::include)) {
    Json row{{"space", name_of(change->space)}, {"match", name_of(change->match)}};
    row.update(change_json(*change));
    row["stack"] =
        change->stack_after != 0
            ? recording::stack_json(stacks_after_.locations(change->stack_after), *after_.locations)
            : recording::stack_json(stacks_before_.locations(change->stack_before),
                                    *before_.locations);
    stacks.push_back(std::move(row));
  }
  return {{"schema_version", 1},
          {"at", style.at},
          {"space", style.space},
          {"before", side_json(before_)},
          {"after", side_json(after_)},
          {"total",
           {{"before_bytes", difference_.total.before.bytes},
            {"after_bytes", difference_.total.after.bytes},
            {"growth_bytes", difference_.total.growth()}}},
          {"spaces", std::move(spaces)},
          {"resident_memory", resident_memory_json(style)},
          {"changed_functions", changed(difference_.functions)},
          {"changed_stacks", changed(difference_.stacks)},
          {"functions", std::move(functions)},
          {"stacks", std::move(stacks)}};
}

std::vector<DiffPage::KindChange> DiffPage::resident_memory(const DiffStyle& style) const {
  std::vector<KindChange> changes;
  const recording::Recording &before = *before_.recording, &after = *after_.recording;
  if (style.at != "end" || !before.has_residency() || !after.has_residency()) return changes;
  for (const sections::ResidentKindName& kind : sections::resident_kinds()) {
    const auto number = static_cast<std::size_t>(kind.kind);
    changes.push_back(
        {kind, before.residency().kind_bytes[number], after.residency().kind_bytes[number]});
  }
  std::ranges::stable_sort(changes, std::ranges::greater{}, &KindChange::growth);
  return changes;
}

Json DiffPage::resident_memory_json(const DiffStyle& style) const {
  const std::vector<KindChange> changes = resident_memory(style);
  if (changes.empty()) return nullptr;
  Json kinds = Json::object();
  for (const KindChange& change : changes)
    kinds[std::string{change.kind.key}] = growth_json(change.before, change.after);
  Json json = growth_json(sections::resident_bytes(before_.recording->residency()),
                          sections::resident_bytes(after_.recording->residency()));
  json["kinds"] = std::move(kinds);
  return json;
}

// An account that adds up: what grew without a holder, such as pages of files, is in it, too.
void DiffPage::print_resident_memory(const DiffStyle& style, const Terminal& terminal) const {
  const std::vector<KindChange> changes = resident_memory(style);
  if (changes.empty()) return;
  fmt::print("\n{}\n", terminal.paint(Colour::dim,
                                      fmt::format("  {:<27} {:>12} {:>12} {:>12}",
                                                  "resident memory", "before", "after", "grew")));
  const auto line = [&](std::string_view name, std::uint64_t before, std::uint64_t after) {
    const std::int64_t growth =
        static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
    fmt::print("  {:<27} {:>12} {:>12} {}\n", name, size_text(before), size_text(after),
               terminal.paint(colour_of(growth), fmt::format("{:>12}", growth_text(growth))));
  };
  for (const KindChange& change : changes)
    if (change.before != 0 || change.after != 0)
      line(change.kind.brief, change.before, change.after);
  line("in all", sections::resident_bytes(before_.recording->residency()),
       sections::resident_bytes(after_.recording->residency()));
}

void DiffPage::print_total(const DiffStyle& style, const Terminal& terminal) const {
  const Change& total = difference_.total;
  fmt::print("{}  {} → {}, {}, {}\n",
             terminal.paint(total.growth() == 0 ? Colour::bold : colour_of(total.growth()),
                            growth_text(total.growth())),
             size_text(total.before.bytes), size_text(total.after.bytes),
             style.space == "all" ? "all spaces" : style.space,
             style.at == "ever" ? "allocated ever" : "at the " + style.at);
  fmt::print("  from {}\n  to   {}\n\n", clip_start(printable(path_of(before_).string()), 80),
             clip_start(printable(path_of(after_).string()), 80));
  fmt::print("{}\n", terminal.paint(Colour::dim, fmt::format("  {:<10} {:>12} {:>12} {:>12}",
                                                             "space", "before", "after", "grew")));
  for (const SpaceChange& change : difference_.spaces) {
    fmt::print("  {:<10} {:>12} {:>12} {}\n", name_of(change.space), size_text(change.before.bytes),
               size_text(change.after.bytes),
               terminal.paint(colour_of(change.growth()),
                              fmt::format("{:>12}", growth_text(change.growth()))));
  }
}

void DiffPage::print_functions(const DiffStyle& style, const Terminal& terminal) const {
  const auto shown = most_changed(difference_.functions, style.top, by_chance_of(style));
  if (shown.empty()) return;
  fmt::print("\n{}\n", terminal.paint(Colour::bold, "functions, what grew most first"));
  const std::int64_t largest = largest_change(difference_.functions);
  for (const FunctionChange* change : shown) {
    const recording::Locations* locations = nullptr;
    const recording::Location& location = location_of(*change, locations);
    const std::string text = location.function.empty() && location.file.empty()
                                 ? "unknown code"
                                 : recording::location_text(location, *locations, kColumns - 47);
    const std::uint64_t after =
        change->is_of_resident ? change->after.resident_bytes.value_or(0) : change->after.bytes;
    fmt::print(
        "  {} {} {:>10} {}\n",
        terminal.paint(colour_of(change->ranked_growth()),
                       fmt::format("{:>11}", growth_text(change->ranked_growth()))),
        terminal.paint(colour_of(change->ranked_growth()), bar(change->ranked_growth(), largest)),
        change->word() == "new" || change->word() == "gone" ? std::string{change->word()}
                                                            : size_text(after),
        clip_start(text, kColumns - 47));
  }
}

void DiffPage::print_stacks(const DiffStyle& style, const Terminal& terminal) const {
  const auto shown = most_changed(difference_.stacks, style.top, by_chance_of(style));
  if (shown.empty()) return;
  fmt::print("\n{}\n", terminal.paint(Colour::bold, "stacks, what grew most first"));
  std::size_t number = 0;
  for (const StackChange* change : shown) {
    const std::int64_t growth = change->ranked_growth();
    const std::string figures = fmt::format("{}{}{}", change->estimated ? "about " : "",
                                            growth_text(growth), resident_word(*change));
    fmt::print("  {:>2}  {}  {}, {}: {} → {}\n", ++number,
               terminal.paint(colour_of(growth), figures), name_of(change->space), change->word(),
               side_text(change->before, change->is_of_resident),
               side_text(change->after, change->is_of_resident));
    const bool is_after = change->stack_after != 0;
    const bundles::Source& source = is_after ? after_ : before_;
    const recording::Stacks& stacks = is_after ? stacks_after_ : stacks_before_;
    const recording::StackId stack = is_after ? change->stack_after : change->stack_before;
    fmt::print("{}", recording::stack_text(stacks.locations(stack), *source.locations,
                                           {terminal, 6, style.full, source.lines.get()}));
  }
  const std::size_t all = changed(difference_.stacks);
  if (shown.size() < all)
    fmt::print("  and {}: --top N\n",
               plural(all - shown.size(), "smaller change", "smaller changes"));
}

std::vector<std::string> DiffPage::notes(const DiffStyle& style) const {
  std::vector<std::string> notes;
  const auto any = [&](auto has) { return std::ranges::any_of(difference_.stacks, has); };
  if (any([](const StackChange& row) { return row.match == Match::symbol; })) {
    notes.emplace_back(
        "stacks with different lines were matched by their functions and file names");
  }
  if (!style.by_chance && any([](const StackChange& row) { return row.by_chance; })) {
    notes.emplace_back("changes within the random error of sampling are left out (--by-chance)");
  }
  if (before_.recording->mode_now() != after_.recording->mode_now()) {
    notes.emplace_back(
        "one recording is exact and the other sampled: small blocks are counted in one and "
        "estimated in the other");
  }
  for (const bundles::Source* side : {&before_, &after_}) {
    for (std::string& note : sections::notes_of(*side)) {
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    }
  }
  return notes;
}

void DiffPage::print(const DiffStyle& style, const Terminal& terminal) const {
  print_total(style, terminal);
  print_resident_memory(style, terminal);
  print_functions(style, terminal);
  print_stacks(style, terminal);
  sections::print_notes(notes(style), terminal);
}

}  // namespace oomrec::tools::findings
