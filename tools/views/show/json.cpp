#include "common/facts/end.h"
#include "tools/base/fact_reader.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/holders.h"
#include "tools/bundles/store/source.h"
#include "tools/bundles/store/trigger.h"
#include "tools/findings/advice/advice.h"
#include "tools/processes/gpus/gpu_processes.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/sections/crash.h"
#include "tools/sections/devices.h"
#include "tools/sections/holders.h"
#include "tools/sections/notes.h"
#include "tools/sections/objects.h"
#include "tools/sections/other_processes.h"
#include "tools/sections/process.h"
#include "tools/sections/resident_memory.h"
#include "tools/views/show/show.h"

namespace oomrec::tools::views {
namespace {

Json all_holders_json(const bundles::Source& source, std::size_t top, recording::At at) {
  recording::Stacks stacks{*source.recording, *source.locations};
  Json holders = Json::array();
  for (const sections::HolderGroup& group : sections::holder_groups(source, stacks, at)) {
    for (Json& row : sections::holders_json(group, stacks, *source.locations, top))
      holders.push_back(std::move(row));
  }
  return holders;
}

Json devices_json(const bundles::Source& source, std::size_t top) {
  recording::Stacks stacks{*source.recording, *source.locations};
  Json rows = Json::array();
  for (const recording::DeviceFigures& device :
       recording::devices_of(*source.recording, source.failure())) {
    rows.push_back(sections::device_json(device));
    rows.back()["processes"] = processes::others_on(source, device.uuid);
    rows.back()["holders"] = sections::holders_json(sections::holders_on(source, device, stacks),
                                                    stacks, *source.locations, top);
  }
  return rows;
}

// null for a running process, and if nothing is known of what it holds.
Json signature_json(const bundles::Source& source) {
  if (source.is_live()) return nullptr;
  const bundles::Signature signature = bundles::signature_of(source);
  if (signature.key.empty()) return nullptr;
  return {{"key", signature.key},
          {"version", bundles::kSignatureVersion},
          {"title", signature.title},
          {"share", signature.top_share}};
}

Json advice_json(const bundles::Source& source) {
  Json list = Json::array();
  for (const findings::Hint& hint : findings::advice_for(source))
    list.push_back({{"rule", hint.rule}, {"text", printable(hint.text)}});
  return list;
}

}  // namespace

Json show_json(const bundles::Source& source, const ShowStyle& style) {
  constexpr unsigned kMostHolders = 100;
  const std::size_t top = style.top != 0 ? style.top : kMostHolders;
  const recording::At at = sections::moment_of(source, style.at);
  const verdict::Verdict verdict = source.verdict();
  const auto related = sections::related_processes(source);
  const auto snapshot = bundles::snapshot_in(source.bundle);
  return {
      {"schema_version", 2},
      {"bundle", text_or_null(source.bundle.string())},
      {"created_at_utc", text_or_null(sections::created_at(source))},
      {"trigger", name_of(source.trigger())},
      {"outcome", source.outcome()},
      fact_member(verdict),
      {"signature", signature_json(source)},
      {"context", text_or_null(printable(source.reason()))},
      {"process", sections::process_json(source)},
      {"request", bundles::request_json(source)},
      {"in_flight", bundles::in_flight_json(source)},
      {"exception", sections::exception_json(source)},
      {"custom_metadata", sections::custom_metadata_json(source)},
      {"crash", sections::crash_json(source)},
      fact_member(source.recording->header().child),
      fact_member(verdict.limit),
      fact_member(session::limit_reserve_of(source.recording->header())),
      {"cgroup_account", sections::cgroup_account_json(source)},
      {"spaces", sections::spaces_json(*source.recording)},
      {"resident_memory", sections::resident_memory_json(source)},
      {"holders_at", name_of(recording::kAtNames, at)},
      {"holders", all_holders_json(source, top, at)},
      {"devices", devices_json(source, top)},
      {"objects", sections::python_objects_json(source)},
      {"torch_snapshot", snapshot ? Json(snapshot->path().string()) : Json(nullptr)},
      {"advice", advice_json(source)},
      {"processes", sections::tree_json(related)},
      {"others", sections::others_json(related)},
      {"episode", sections::episode_json(sections::episode_of(source))},
      {"job", source.ranks},
      {"recording", sections::recording_json(source)},
      {"notes", sections::notes_of(source)},  // last: after all stacks were resolved
  };
}

}  // namespace oomrec::tools::views
