#include "tools/bundles/redact/files.h"

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

}  // namespace oomrec::tools::bundles
