#include "common/facts/end.h"
#include "tools/base/json_tree.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/holders.h"
#include "tools/bundles/store/failed_request.h"
#include "tools/bundles/store/snapshot_source.h"
#include "tools/findings/advice/advice.h"
#include "tools/print/cgroup_account.h"
#include "tools/print/crash.h"
#include "tools/print/devices.h"
#include "tools/print/episode.h"
#include "tools/print/exception.h"
#include "tools/print/holders.h"
#include "tools/print/moment.h"
#include "tools/print/notes.h"
#include "tools/print/objects.h"
#include "tools/print/other_processes.h"
#include "tools/print/process.h"
#include "tools/print/resident_memory.h"
#include "tools/print/spaces.h"
#include "tools/processes/gpus/gpu_processes.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/views/show/show.h"

namespace oomrec::tools::views {
namespace {

Json all_holders_json(const bundles::Source& source, std::size_t top, recording::At at) {
  recording::Stacks stacks{*source.recording, *source.locations};
  Json holders = Json::array();
  for (const print::HolderGroup& group : print::holder_groups(source, stacks, at)) {
    for (Json& row : print::holders_json(group, stacks, *source.locations, top))
      holders.push_back(std::move(row));
  }
  return holders;
}

Json devices_json(const bundles::Source& source, std::size_t top) {
  recording::Stacks stacks{*source.recording, *source.locations};
  Json rows = Json::array();
  for (const recording::DeviceFigures& device :
       recording::devices_of(*source.recording, source.failure())) {
    rows.push_back(print::device_json(device));
    rows.back()["processes"] = processes::others_on(source, device.uuid);
    rows.back()["holders"] = print::holders_json(print::holders_on(source, device, stacks), stacks,
                                                 *source.locations, top);
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
  const recording::At at = print::moment_of(source, style.at);
  const verdict::Verdict verdict = source.verdict();
  const Json related = print::related_processes(source);
  const auto snapshot = bundles::snapshot_in(source.bundle);
  return {
      {"schema_version", 2},
      {"bundle", text_or_null(source.bundle.string())},
      {"created_at_utc", text_or_null(print::created_at(source))},
      {"trigger", name_of(source.trigger())},
      {"outcome", source.outcome()},
      fact_member(verdict),
      {"signature", signature_json(source)},
      {"context", text_or_null(printable(source.reason()))},
      {"process", print::process_json(source)},
      {"request", bundles::request_json(source)},
      {"in_flight", bundles::in_flight_json(source)},
      {"exception", print::exception_json(source)},
      {"custom_metadata", print::custom_metadata_json(source)},
      {"crash", print::crash_json(source)},
      fact_member(source.recording->header().child),
      fact_member(verdict.limit),
      fact_member(session::limit_reserve_of(source.recording->header())),
      {"cgroup_account", print::cgroup_account_json(source)},
      {"spaces", print::spaces_json(*source.recording)},
      {"resident_memory", print::resident_memory_json(source)},
      {"holders_at", name_of(recording::kAtNames, at)},
      {"holders", all_holders_json(source, top, at)},
      {"devices", devices_json(source, top)},
      {"objects", print::python_objects_json(source)},
      {"torch_snapshot", snapshot ? Json(snapshot->path().string()) : Json(nullptr)},
      {"advice", advice_json(source)},
      {"processes", related["processes"]},
      {"others", related["others"]},
      {"episode", print::episode_json(source)},
      {"job", source.ranks},
      {"recording", print::recording_json(source)},
      {"notes", print::notes_of(source)},  // last: after all stacks were resolved
  };
}

}  // namespace oomrec::tools::views
