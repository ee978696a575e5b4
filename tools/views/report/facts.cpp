#include "tools/views/report/facts.h"

#include <cstring>

#include "common/bundle/retention.h"
#include "common/facts/end.h"
#include "common/text/frames.h"
#include "tools/base/json_tree.h"
#include "tools/base/text.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/store/failed_request.h"
#include "tools/print/cgroup_account.h"
#include "tools/print/crash.h"
#include "tools/print/devices.h"
#include "tools/print/moment.h"
#include "tools/print/notes.h"
#include "tools/print/objects.h"
#include "tools/print/other_processes.h"
#include "tools/print/process.h"
#include "tools/print/resident_memory.h"
#include "tools/recording/reading/devices.h"
#include "tools/views/report/data.h"

namespace oomrec::tools::views {
namespace {

using session::TableId;

Json meta_json(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  const session::Header& header = recording.header();
  Json meta = print::process_json(source);
  meta["title"] = report_title(source);
  meta["program"] = program_name(recording);
  meta["arguments"] = meta["argv"];
  meta.erase("argv");
  meta["host"] = text_or_null(printable({header.host, strnlen(header.host, sizeof header.host)}));
  meta["user"] = nullptr;  // not recorded
  meta["created_utc"] = print::created_at(source);
  meta["oomrec_version"] = OOMREC_VERSION;
  meta["mode"] = name_of(recording.mode_now());
  meta["estimated"] = recording.estimated();
  meta["redacted"] = bundles::is_redacted(source);
  meta["live"] = source.is_live();
  meta["weight"] = recording.weight() == recording::Weight::resident ? "resident" : "requested";
  meta["moment"] = name_of(recording::kAtNames, print::moment_of(source));
  meta["trigger"] = name_of(source.trigger());
  meta["outcome"] = source.outcome();
  meta["outcome_sentence"] = print::outcome_sentence(source.outcome());
  meta["bundle"] = text_or_null(source.bundle.filename().string());
  meta["recording"] = print::recording_json(source);
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
    const recording::SpaceTotals totals = recording.totals(space);
    spaces.push_back({{"name", name_of(space)},
                      {"adds_up", is_additive(space)},
                      {"live_bytes", totals.live_bytes},
                      {"peak_bytes", recording.peak_bytes(space)},
                      {"live_count", totals.live_count},
                      {"allocated_bytes", totals.allocated_bytes},
                      {"allocated_count", totals.allocated_count}});
  }
  return spaces;
}

Json devices_member(const bundles::Source& source) {
  Json devices = Json::array();
  for (const recording::DeviceFigures& device :
       recording::devices_of(*source.recording, source.failure()))
    devices.push_back(print::device_json(device));
  return devices;
}

Json modules_member(const recording::Recording& recording) {
  Json modules = Json::array();
  session::Module module{};
  for (std::uint64_t i = 1; i < recording.view().count(TableId::modules); ++i) {
    if (!recording.view().read(TableId::modules, i, module)) continue;
    char buffer[2 * sizeof module.build_id + 1];
    modules.push_back({{"path", printable(recording.text(module.path))},
                       {"build_id", text_or_null(text::build_id_text(module, buffer))}});
  }
  return modules;
}

}  // namespace

Json report_facts(const bundles::Source& source) {
  const verdict::Verdict verdict = source.verdict();
  const Json related = print::related_processes(source);
  const Json environment =
      source.bundle.empty() ? Json(nullptr) : read_json(source.bundle, "environment.json");
  return {
      {"schema_version", 1},
      {"meta", meta_json(source)},
      {"verdict", verdict_member(source, verdict)},
      {"request", bundles::request_json(source)},
      {"crash", print::crash_json(source)},
      fact_member(source.recording->header().child),
      {"limit", limit_member(verdict.limit)},
      {"cgroup_account", print::cgroup_account_json(source)},
      {"spaces", spaces_member(*source.recording)},
      {"resident_memory", print::resident_memory_json(source)},
      {"devices", devices_member(source)},
      {"processes", related["processes"]},
      {"others", related["others"]},
      {"objects", print::python_objects_json(source)},
      {"modules", modules_member(*source.recording)},
      {"environment", environment},
      {"notes", print::notes_of(source)},
      {"job", source.ranks},
  };
}

}  // namespace oomrec::tools::views
