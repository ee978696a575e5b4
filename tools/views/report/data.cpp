#include "tools/views/report/data.h"

#include <fmt/format.h>

#include "common/text/text.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/other_processes.h"
#include "tools/findings/advice/advice.h"
#include "tools/findings/fragmentation/page.h"
#include "tools/findings/leaks/page.h"
#include "tools/recording/reading/script.h"
#include "tools/views/report/facts.h"
#include "tools/views/report/over_time.h"
#include "tools/views/report/rows.h"

namespace oomrec::tools::views {
namespace {

// The index of the recorded process among the page's processes, which may be null.
std::uint16_t own_number(const Json& processes) {
  for (std::size_t i = 0; processes.is_array() && i < processes.size(); ++i)
    if (text_of(processes[i], "relation") == "self") return static_cast<std::uint16_t>(i);
  return 0;
}

Json advice_json(const bundles::Source& source, const findings::Leaks& leaks,
                 const ReportRows& rows) {
  Json list = Json::array();
  // A job's advice refers to the holders of one rank's recording, which are not rows of this
  // report.
  const bool job = source.is_job();
  for (const findings::Hint& hint :
       job ? findings::advice_for(source)
           : findings::advice_of(findings::advice_facts(source, leaks))) {
    const auto row = hint.holder && !job ? rows.row_of(*hint.holder) : std::nullopt;
    list.push_back(
        {{"rule", hint.rule}, {"text", hint.text}, {"row", row ? Json(*row) : Json(nullptr)}});
  }
  return list;
}

// Adds the rows of the other processes: what they held when their bundles were written.
void add_other_processes(const bundles::Source& source, const Json& processes, StackTrie& trie,
                         ReportRows& rows) {
  bundles::for_each_other_process(
      source, processes, [&](std::size_t number, const bundles::Source& other) {
        NamedStacks stacks{*other.recording, *other.locations, trie};
        rows.add_process(*other.recording, stacks, static_cast<std::uint16_t>(number));
        trie.add_locations(*other.locations, nullptr);
      });
}

}  // namespace

std::string program_name(const recording::Recording& recording) {
  const std::string script = recording::script_of(recording);
  if (!script.empty()) return printable(script);
  const std::string program{
      text::base_name(recording.view().string(program_of(recording.header())))};
  return program.empty() ? "program" : printable(program);
}

std::string report_title(const bundles::Source& source) {
  const std::string program = clip(program_name(*source.recording), kColumns);
  if (source.is_job())
    return fmt::format("{} ({})", program,
                       plural(member(source.ranks, "ranks").size(), "rank", "ranks"));
  return fmt::format("{} (pid {})", program, source.recording->header().pid);
}

ReportData report_data(const bundles::Source& source) {
  Json json = report_facts(source);
  Container container;
  StackTrie trie;
  NamedStacks stacks{*source.recording, *source.locations, trie};
  ReportRows rows{*source.recording, stacks, own_number(json["processes"]), source.ranks};
  add_over_time(*source.recording, stacks, rows, container, json);
  add_ranks_over_time(source, container);
  trie.add_locations(*source.locations, source.lines.get());
  add_other_processes(source, json["processes"], trie, rows);
  rows.add_to(container);
  trie.add_to(container);
  const findings::LeakReport leaks{source};
  json["advice"] = advice_json(source, leaks.leaks(), rows);
  constexpr std::size_t kMostLeaks = 100;
  json["leaks"] = leaks.json(kMostLeaks);
  // A job's recording has no single blocks, so there is no fragmentation to compute.
  json["fragmentation"] =
      source.is_job() ? Json(nullptr)
                      : findings::fragmentation_json(findings::fragmentation_of(source), source);
  json["groups"] = trie.groups();
  json["labels"] = trie.labels();
  json["strings"] = trie.texts();
  return {container.deflated(std::move(json)), trie.labels()};
}

}  // namespace oomrec::tools::views
