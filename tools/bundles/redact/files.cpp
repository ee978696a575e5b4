#include "tools/bundles/redact/files.h"

#include <algorithm>
#include <vector>

namespace oomrec::tools::bundles {
namespace {

// A member to clear, at any depth of the file: to null, or to an empty value if the format does not
// allow null.
struct ClearedMember {
  std::string_view file, member;
  Json (*replacement)(const Json&);
};
Json null(const Json&) { return nullptr; }
Json no_object(const Json&) { return Json::object(); }
Json no_list(const Json&) { return Json::array(); }
Json unknown(const Json&) { return "unknown"; }

// "BOOT-PID-START" identifies a process in its tree. The boot id identifies the machine: zero it.
Json zeroed_boot(const Json& process) {
  const std::string key = process.is_string() ? process.get<std::string>() : std::string{};
  const std::size_t end = key.find('-');
  return end == key.npos ? Json("") : Json(std::string(end, '0') + key.substr(end));
}

constexpr ClearedMember kClearedMembers[] = {
    {"manifest.json", "process", zeroed_boot},
    {"manifest.json", "process_tree", zeroed_boot},
    {"manifest.json", "job_id", null},
    {"metadata.json", "context", null},
    {"metadata.json", "custom_metadata", no_object},
    {"metadata.json", "exception_message", null},
    {"metadata.json", "exception_traceback", null},
    {"metadata.json", "largest_other", null},
    {"metadata.json", "uuid", null},
    {"events.json", "context", null},
    {"events.json", "metadata", null},
    {"environment.json", "host", null},
    {"environment.json", "argv", null},
    {"environment.json", "cwd", null},
    {"environment.json", "cgroup", null},
    {"environment.json", "environment", no_object},
    {"environment.json", "uuid", null},
    {"processes.json", "process", zeroed_boot},
    {"processes.json", "cgroup", null},
    {"processes.json", "others", no_list},
    {"processes.json", "session_directory", null},
    {"telemetry.json", "host", unknown},
    {"telemetry.json", "context", null},
    {"telemetry.json", "job_id", null},
    {"telemetry.json", "metadata", no_object},
    {"gpu_processes.json", "uuid", null},
    {"gpu_processes.json", "processes", no_list},
};

const ClearedMember* cleared_member(std::string_view file, std::string_view member) {
  for (const ClearedMember& row : kClearedMembers)
    if (row.file == file && row.member == member) return &row;
  return nullptr;
}

// Members whose whole value is a path, absolute or relative.
bool is_path(std::string_view member) {
  return member == "file" || member == "module" || member == "path" || member == "executable" ||
         member == "driver_path";
}

void redact(std::string_view file, std::string_view member, Json& value,
            const TextRedactor& redactor) {
  if (value.is_string()) {
    const auto& text = value.text();
    value = is_path(member) ? redactor.path(text) : redactor.text(text);
  } else if (value.is_array()) {
    for (Json& element : value) redact(file, member, element, redactor);
  } else if (value.is_object()) {
    Json redacted = Json::object();
    for (auto& [name, part] : value.items()) {
      const ClearedMember* const row = cleared_member(file, name);
      if (row != nullptr)
        part = row->replacement(part);
      else
        redact(file, name, part, redactor);
      redacted[redactor.text(name)] = std::move(part);
    }
    value = std::move(redacted);
  }
}

}  // namespace

Json redacted_file(std::string_view file, Json json, const TextRedactor& redactor) {
  redact(file, "", json, redactor);
  return json;
}

namespace {

using session::TableId;

constexpr std::size_t kMost = 200'000;  // about 64 MiB, the most that readers accept

// The distinct native frames of all stacks and of the crash.
std::vector<std::uint64_t> native_frames(const session::View& view) {
  std::vector<std::uint64_t> frames;
  const auto add = [&](std::uint64_t frame) {
    if (session::kind_of(frame) == session::FrameKind::native && session::module_of(frame) != 0)
      frames.push_back(frame);
  };
  for (const auto& node : session::entries<session::Node>(view, TableId::nodes)) add(node.frame);
  const session::Crash& crash = view.header().crash;
  for (std::uint32_t i = 0; i < std::min(crash.frame_count, session::kCrashFrames); ++i)
    add(crash.frames[i]);
  std::ranges::sort(frames);
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  if (frames.size() > kMost) frames.resize(kMost);
  return frames;
}

Json frames_json(const std::vector<recording::LocationId>& ids,
                 const recording::Locations& locations, const TextRedactor& redactor) {
  Json frames = Json::array();
  for (const recording::LocationId id : ids) {
    const recording::Location& location = locations[id];
    frames.push_back({{"function", location.function},
                      {"file", text_or_null(redactor.path(location.file))},
                      {"line", number_or_null(location.line)},
                      {"inlined", location.inlined}});
  }
  return frames;
}

}  // namespace

Json all_symbols(const recording::Recording& recording, recording::Locations& locations,
                 const TextRedactor& redactor) {
  Json symbols = Json::array();
  for (const std::uint64_t frame : native_frames(recording.view())) {
    const std::vector<recording::LocationId> ids = locations.of_frame(frame);
    const recording::Location& outermost = locations[ids.back()];
    const std::string build_id = locations.build_id(outermost);
    if (outermost.function.empty() || build_id.empty())
      continue;  // no name, or no key to find it by
    symbols.push_back({{"module", redactor.path(locations.module_path(outermost))},
                       {"build_id", build_id},
                       {"offset", session::offset_of(frame)},
                       {"exact", session::is_exact(frame)},
                       {"frames", frames_json(ids, locations, redactor)}});
  }
  return {{"schema_version", 1}, {"source", "debug_info"}, {"symbols", std::move(symbols)}};
}

}  // namespace oomrec::tools::bundles
