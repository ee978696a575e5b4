#include "tools/bundles/redact/files.h"

namespace oomrec::tools::bundles {
namespace {

// A member that loses its value, wherever in the file it is: null, or empty where the format has
// no null for it.
struct Unshared {
  std::string_view file, member;
  Json (*instead)(const Json&);
};
Json null(const Json&) { return nullptr; }
Json no_object(const Json&) { return Json::object(); }
Json no_list(const Json&) { return Json::array(); }
Json unknown(const Json&) { return "unknown"; }

// "BOOT-PID-START" tells processes of a group apart; which boot it was is the machine's.
Json other_boot(const Json& process) {
  const std::string key = process.is_string() ? process.get<std::string>() : std::string{};
  const std::size_t end = key.find('-');
  return end == key.npos ? Json("") : Json(std::string(end, '0') + key.substr(end));
}

constexpr Unshared kLeftOut[] = {
    {"manifest.json", "process", other_boot},
    {"manifest.json", "job_id", null},
    {"metadata.json", "context", null},
    {"metadata.json", "custom_metadata", no_object},
    {"metadata.json", "exception_message", null},
    {"metadata.json", "exception_traceback", null},
    {"metadata.json", "uuid", null},
    {"events.json", "context", null},
    {"events.json", "metadata", null},
    {"environment.json", "host", null},
    {"environment.json", "argv", null},
    {"environment.json", "cwd", null},
    {"environment.json", "cgroup", null},
    {"environment.json", "environment", no_object},
    {"environment.json", "uuid", null},
    {"processes.json", "process", other_boot},
    {"processes.json", "cgroup", null},
    {"processes.json", "others", no_list},
    {"telemetry.json", "host", unknown},
    {"telemetry.json", "context", null},
    {"telemetry.json", "job_id", null},
    {"telemetry.json", "metadata", no_object},
    {"gpu_processes.json", "uuid", null},
    {"gpu_processes.json", "processes", no_list},
};

const Unshared* left_out(std::string_view file, std::string_view member) {
  for (const Unshared& row : kLeftOut)
    if (row.file == file && row.member == member) return &row;
  return nullptr;
}

// Nothing but a path: also one that is not absolute.
bool is_path(std::string_view member) {
  return member == "file" || member == "module" || member == "path" || member == "executable" ||
         member == "driver_path";
}

void redact(std::string_view file, std::string_view member, Json& value,
            const RedactedWords& words) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    value = is_path(member) ? words.path(text) : words.text(text);
  } else if (value.is_array()) {
    for (Json& element : value) redact(file, member, element, words);
  } else if (value.is_object()) {
    Json redacted = Json::object();
    for (auto& [name, part] : value.items()) {
      const Unshared* const row = left_out(file, name);
      if (row != nullptr)
        part = row->instead(part);
      else
        redact(file, name, part, words);
      redacted[words.text(name)] = std::move(part);
    }
    value = std::move(redacted);
  }
}

}  // namespace

Json redacted_file(std::string_view file, Json json, const RedactedWords& words) {
  redact(file, "", json, words);
  return json;
}

}  // namespace oomrec::tools::bundles
