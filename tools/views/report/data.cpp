#include "tools/views/report/data.h"

#include <fmt/format.h>

#include "common/bundle/retention.h"
#include "common/facts/end.h"
#include "common/facts/environment.h"
#include "common/text/frames.h"
#include "common/text/text.h"
#include "tools/base/fact_reader.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/store/trigger.h"
#include "tools/findings/advice/advice.h"
#include "tools/findings/fragmentation/page.h"
#include "tools/findings/leaks/page.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/reading/script.h"
#include "tools/sections/crash.h"
#include "tools/sections/devices.h"
#include "tools/sections/holders.h"
#include "tools/sections/notes.h"
#include "tools/sections/objects.h"
#include "tools/sections/other_processes.h"
#include "tools/sections/process.h"
#include "tools/sections/resident_memory.h"
#include "tools/views/report/over_time.h"
#include "tools/views/report/rows.h"

namespace oomrec::tools::views {
namespace {

// The index of the recorded process among the page's processes, which may be none.
std::uint16_t own_number(const std::vector<bundles::TreeProcess>& processes) {
  const auto own = std::ranges::find_if(
      processes, [](const auto& process) { return process.relation == Relation::self; });
  return own != processes.end() ? static_cast<std::uint16_t>(own - processes.begin()) : 0;
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
    list.push_back({{"rule", hint.rule}, {"text", hint.text}, {"row", row}});
  }
  return list;
}

// Adds the rows of the other processes: what they held when their bundles were written.
void add_other_processes(const bundles::Source& source,
                         const std::vector<bundles::TreeProcess>& processes, StackTrie& trie,
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
  const bundles::Processes related = sections::related_processes(source);
  Json json = report_facts(source, related);
  Container container;
  StackTrie trie;
  NamedStacks stacks{*source.recording, *source.locations, trie};
  ReportRows rows{*source.recording, stacks, own_number(related.processes), source.ranks};
  add_over_time(*source.recording, stacks, rows, container, json);
  add_ranks_over_time(source, container);
  trie.add_locations(*source.locations, source.lines.get());
  add_other_processes(source, related.processes, trie, rows);
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

namespace {

using session::TableId;

Json meta_json(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  const session::Header& header = recording.header();
  Json meta = sections::process_json(source);
  meta["title"] = report_title(source);
  meta["program"] = program_name(recording);
  meta["arguments"] = meta["argv"];
  meta.erase("argv");
  meta["host"] = text_or_null(printable({header.host, strnlen(header.host, sizeof header.host)}));
  meta["user"] = nullptr;  // not recorded
  meta["created_utc"] = sections::created_at(source);
  meta["oomrec_version"] = OOMREC_VERSION;
  meta["mode"] = name_of(recording.mode_now());
  meta["estimated"] = recording.estimated();
  meta["redacted"] = bundles::is_redacted(source);
  meta["live"] = source.is_live();
  meta["weight"] = recording.weight() == recording::Weight::resident ? "resident" : "requested";
  meta["moment"] = name_of(recording::kAtNames, sections::moment_of(source));
  meta["trigger"] = name_of(source.trigger());
  meta["outcome"] = source.outcome();
  meta["outcome_sentence"] = sections::outcome_sentence(source.outcome());
  meta["bundle"] = text_or_null(source.bundle.filename().string());
  meta["recording"] = sections::recording_json(source);
  return meta;
}

// null for a running process without a failure.
Json verdict_member(const bundles::Source& source, const verdict::Verdict& verdict) {
  if (source.is_live() && source.failure() == 0) return nullptr;
  Json json = fact_json(verdict);
  json["is_memory"] = bundle::is_about_memory(name_of(verdict.code), name_of(source.trigger()));
  return json;
}

Json limit_member(const facts::Limit& limit) {
  return limit.kind == LimitKind::none ? Json(nullptr) : fact_json(limit);
}

Json spaces_member(const recording::Recording& recording) {
  Json spaces = Json::array();
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const auto space = static_cast<Space>(i);
    spaces.push_back(fact_json(facts::NamedTotals{sections::totals_of(recording, space),
                                                  name_of(space), is_additive(space)}));
  }
  return spaces;
}

Json devices_member(const bundles::Source& source) {
  Json devices = Json::array();
  for (const recording::DeviceFigures& device :
       recording::devices_of(*source.recording, source.failure()))
    devices.push_back(sections::device_json(device));
  return devices;
}

Json modules_member(const recording::Recording& recording) {
  Json modules = Json::array();
  for (const auto& module : session::entries<session::Module>(recording.view(), TableId::modules)) {
    char buffer[2 * sizeof module.build_id + 1];
    modules.push_back(fact_json(facts::Module<std::string_view>{
        recording.view().string(module.path), text::build_id_text(module, buffer)}));
  }
  return modules;
}

}  // namespace

Json report_facts(const bundles::Source& source, const bundles::Processes& related) {
  const verdict::Verdict verdict = source.verdict();
  const Json environment =
      source.bundle.empty() ? Json(nullptr) : read_json(source.bundle, "environment.json");
  return {
      {"schema_version", 1},
      {"meta", meta_json(source)},
      {"verdict", verdict_member(source, verdict)},
      {"request", bundles::request_json(source)},
      {"crash", sections::crash_json(source)},
      fact_member(source.recording->header().child),
      {"limit", limit_member(verdict.limit)},
      {"cgroup_account", sections::cgroup_account_json(source)},
      {"spaces", spaces_member(*source.recording)},
      {"resident_memory", sections::resident_memory_json(source)},
      {"devices", devices_member(source)},
      {"processes", sections::tree_json(related)},
      {"others", sections::others_json(related)},
      {"objects", sections::python_objects_json(source)},
      {"modules", modules_member(*source.recording)},
      {"environment", environment},
      {"notes", sections::notes_of(source)},
      {"job", source.ranks},
  };
}

}  // namespace oomrec::tools::views
