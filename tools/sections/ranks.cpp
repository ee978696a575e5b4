#include "tools/sections/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/base/text.h"
#include "tools/sections/process.h"

namespace oomrec::tools::sections {
namespace {

constexpr std::size_t kShownRanks = 64;

std::string word(const Json& row, std::string_view key) {
  return printable(text_of(row, key).value_or("?"));
}

std::string numbers_text(const Json& numbers) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> texts;
  for (const Json& number : numbers)
    if (number.is_number_unsigned())
      texts.push_back(fmt::format("{}", number.get<std::uint64_t>()));
  const std::size_t all = texts.size();
  texts.resize(std::min(all, kMost));
  return fmt::format("{}{}", fmt::join(texts, ", "),
                     all > kMost ? fmt::format(" and {} more", all - kMost) : "");
}

bool is_same_rank(const Json& row, const Json& first) {
  const auto rank = number_of(row, "rank");
  return rank && rank == number_of(first, "rank");
}

// The rank's failure, or the rank whose failure ended it, or its outcome.
std::string fate_text(const Json& row) {
  const Json& failure = member(row, "trouble");
  if (const auto after = number_of(row, "ended_after_rank"))
    return fmt::format("ended after rank {}: {}", *after, word(row, "outcome"));
  if (!failure.is_object()) return word(row, "outcome");
  const Json& later = member(failure, "seconds_after_first");
  return fmt::format("{:+.3f} s  {}", later.is_number() ? later.get<double>() : 0.0,
                     word(failure, "what"));
}

// "4711 on node1".
std::string process_text(const Json& row) {
  return fmt::format("{} on {}", number_of(row, "pid").value_or(0), word(row, "host"));
}

std::string line_of(const Json& row, const Json& first, const Terminal& terminal) {
  const auto bytes = [&](std::string_view key) {
    const auto figure = number_of(row, key);
    return figure ? size_text(*figure) : std::string{"-"};
  };
  const bool is_first = is_same_rank(row, first);
  const std::string figures =
      fmt::format("{} {:>4}  {:<17} {:<19} {:>9} {:>9}  ", is_first ? ">" : " ",
                  number_of(row, "rank").value_or(0), clip(process_text(row), 17),
                  clip(word(row, "verdict"), 19), bytes("live_bytes"), bytes("peak_bytes"));
  const std::string line = figures + clip(fate_text(row), kColumns - figures.size());
  return (is_first ? terminal.paint(Colour::bold, line) : line) + "\n";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> job_facts(const bundles::Source& source) {
  const Json& job = source.ranks;
  const Json& rows = member(job, "ranks");
  const Json& clock = member(job, "clock");
  const std::uint64_t hosts = number_of(clock, "hosts").value_or(0);
  const std::uint64_t count = rows.is_array() ? rows.size() : 0;
  const auto mark = text_of(clock, "mark");
  const std::string path =
      source.bundle.empty() ? source.recording->path().string() : source.bundle.string();
  std::vector<std::pair<std::string, std::string>> facts = {
      {source.bundle.empty() ? "read from" : "bundle", clip_start(path, 90)},
      {"merged", created_at(source)},
      {"job", fmt::format("{}{} of {} on {}",
                          word(job, "job_id") == "?" ? std::string{} : word(job, "job_id") + ": ",
                          plural(count, "rank", "ranks"), number_of(job, "world_size").value_or(0),
                          plural(hosts, "host", "hosts"))},
      {"clock",
       mark ? fmt::format("aligned at the mark '{}' of each rank", *mark)
            : std::string{hosts > 1 ? "each host's own wall clock" : "the host's wall clock"}},
      {"started", time_text(source.recording->header().start_realtime_ns)},
  };
  if (text_of(job, "ranks_are") == "as_named")
    facts.emplace_back("ranks", "no recording knows its rank: numbered in the order given");
  if (const Json& missing = member(job, "missing"); missing.is_array() && !missing.empty())
    facts.emplace_back("missing", "rank " + numbers_text(missing));
  for (const Json& one : member(job, "left_out"))
    facts.emplace_back("left out", fmt::format("{}: {}", word(one, "what"), word(one, "why")));
  return facts;
}

std::string ranks_text(const Json& ranks, const Terminal& terminal, bool full) {
  const Json& first = member(ranks, "first");
  std::vector<const Json*> rows;
  for (const Json& row : member(ranks, "ranks")) rows.push_back(&row);
  if (!full && rows.size() > kShownRanks) {
    const auto is_well = [](const Json* row) { return member(*row, "trouble").is_null(); };
    std::ranges::stable_sort(rows,
                             [&](const Json* a, const Json* b) { return is_well(a) < is_well(b); });
  }
  std::string text =
      terminal.paint(Colour::dim, fmt::format("  {:>4}  {:<17} {:<19} {:>9} {:>9}  {}", "rank",
                                              "process", "verdict", "live", "peak", "what"));
  text += "\n";
  const std::size_t shown = full ? rows.size() : std::min(rows.size(), kShownRanks);
  for (std::size_t i = 0; i < shown; ++i) text += line_of(*rows[i], first, terminal);
  if (shown < rows.size()) text += fmt::format("  and {} more: --full\n", rows.size() - shown);
  return text;
}

}  // namespace oomrec::tools::sections
