#include "tools/processes/gpus/gpu_processes.h"

#include <fmt/format.h>

#include <fstream>

#include "common/session/view.h"
#include "tools/base/text.h"
#include "tools/bundles/store/outcome.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "gpu_processes.json";
constexpr std::uint64_t kSecondNs = 1'000'000'000;  // what a bundle's time is rounded to
constexpr std::size_t kShown = 8;

Json looks_json(const std::vector<GpuLook>& looks) {
  Json devices = Json::array();
  for (const GpuLook& look : looks) {
    Json rows = Json::array();
    for (const GpuProcess& process : look.processes)
      rows.push_back({{"pid", process.pid},
                      {"program", text_or_null(printable(process.program))},
                      {"bytes", process.bytes ? Json(*process.bytes) : Json(nullptr)}});
    devices.push_back({{"uuid", printable(look.uuid)},
                       {"used_bytes", look.used_bytes},
                       {"total_bytes", look.total_bytes},
                       {"processes", std::move(rows)}});
  }
  return devices;
}

bool is_new_of_gpu(const fs::path& bundle, std::uint64_t since_ns) {
  std::error_code error;
  if (!bundle.filename().native().starts_with("oom_cuda_") || fs::exists(bundle / kFile, error))
    return false;
  const Json manifest = read_json(bundle / "manifest.json");
  const auto created = text_of(manifest, "created_at_utc");
  return created && time_of_text(*created) + kSecondNs >= since_ns;
}

// Renamed to its name when it is whole, as every file of a bundle.
void write_file(const fs::path& bundle, const Json& devices) {
  const fs::path partial = bundle / fmt::format(".{}.partial", kFile);
  const Json told = {{"schema_version", 1},
                     {"asked_at_utc", time_text(bundles::realtime_now_ns())},
                     {"devices", devices}};
  std::ofstream{partial} << told.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  std::error_code error;
  fs::rename(partial, bundle / kFile, error);
  if (error) fs::remove(partial, error);
}

// null: nobody was asked, and nobody can be.
Json devices_told(const bundles::Source& source) {
  if (!source.bundle.empty()) return member(read_json(source.bundle / kFile), "devices");
  const bool alive = session::life_of(source.recording->view()) == session::Life::alive;
  return alive ? looks_json(look_at_gpus()) : Json(nullptr);
}

}  // namespace

void tell_gpu_processes(const std::vector<fs::path>& directories, std::uint64_t since_ns) {
  std::vector<fs::path> bundles;
  for (const fs::path& directory : directories) {
    std::error_code error;
    for (fs::directory_iterator at{directory, error}, end; !error && at != end; at.increment(error))
      if (is_new_of_gpu(at->path(), since_ns)) bundles.push_back(at->path());
  }
  if (bundles.empty()) return;
  const std::vector<GpuLook> looks = look_at_gpus();
  if (looks.empty()) return;
  for (const fs::path& bundle : bundles) write_file(bundle, looks_json(looks));
}

Json others_on(const bundles::Source& source, const std::string& uuid) {
  const Json devices = devices_told(source);
  if (!devices.is_array() || uuid.empty()) return nullptr;
  for (const Json& device : devices) {
    const Json& processes = member(device, "processes");
    if (text_of(device, "uuid") != uuid || !processes.is_array()) continue;
    Json others = Json::array();
    for (const Json& row : processes) {
      const auto pid = number_of(row, "pid");
      if (!pid || *pid == static_cast<std::uint64_t>(source.recording->header().pid)) continue;
      const auto bytes = number_of(row, "bytes");
      others.push_back({{"pid", *pid},
                        {"program", text_or_null(printable(text_of(row, "program").value_or("")))},
                        {"bytes", bytes ? Json(*bytes) : Json(nullptr)}});
    }
    return others;
  }
  return nullptr;
}

std::string others_on_text(const Json& others) {
  if (!others.is_array()) return {};
  std::string text;
  for (std::size_t i = 0; i < std::min(others.size(), kShown); ++i) {
    const auto bytes = number_of(others[i], "bytes");
    text += fmt::format("    also used by {} (pid {}){}\n",
                        clip(text_of(others[i], "program").value_or("a program"), 32),
                        *number_of(others[i], "pid"), bytes ? ": " + size_text(*bytes) : "");
  }
  if (others.size() > kShown)
    text += fmt::format("    and by {}\n", plural(others.size() - kShown, "other", "others"));
  return text;
}

}  // namespace oomrec::tools::processes
