#include "tools/processes/gpus/gpu_processes.h"

#include <fmt/format.h>

#include "common/session/view.h"
#include "common/system/units.h"
#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/output_file.h"
#include "tools/base/text.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/outcome.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "gpu_processes.json";
constexpr std::size_t kShownProcesses = 8;

Json samples_json(const std::vector<GpuSample>& samples) {
  Json devices = Json::array();
  for (const GpuSample& sample : samples) {
    Json rows = Json::array();
    for (const GpuProcess& process : sample.processes)
      rows.push_back({{"pid", process.pid},
                      {"program", text_or_null(printable(process.program))},
                      {"bytes", process.bytes}});
    devices.push_back({{"uuid", printable(sample.uuid)},
                       {"used_bytes", sample.used_bytes},
                       {"total_bytes", sample.total_bytes},
                       {"processes", std::move(rows)}});
  }
  return devices;
}

bool needs_file(const fs::path& bundle, std::uint64_t since_ns) {
  std::error_code error;
  if (!bundle.filename().native().starts_with("oom_cuda_") || fs::exists(bundle / kFile, error) ||
      !bundles::is_own_bundle(bundle))
    return false;
  const std::string created = bundles::read_file<bundles::Manifest>(bundle).created_at_utc;
  return !created.empty() && time_of_text(created) + kSecondNs >= since_ns;
}

// Fails silently: the bundle may be deleted at any time.
void write_file(const fs::path& bundle, const Json& devices) try {
  const Json content = {{"schema_version", 1},
                        {"asked_at_utc", time_text(bundles::realtime_now_ns())},
                        {"devices", devices}};
  replace_file(bundle, kFile, content.dump(1) + "\n");
} catch (const Error&) {
}

// null: NVML was not called while the process ran.
Json devices_of(const bundles::Source& source) {
  if (!source.bundle.empty()) return member(read_json(source.bundle, kFile), "devices");
  const bool alive = session::life_of(source.recording->view()) == session::Life::alive;
  return alive ? samples_json(sample_gpus()) : Json(nullptr);
}

}  // namespace

void write_gpu_processes(const std::vector<fs::path>& directories, std::uint64_t since_ns) {
  std::vector<fs::path> bundles;
  for (const fs::path& directory : directories)
    for (const fs::path& path : entries_of(directory))
      if (needs_file(path, since_ns)) bundles.push_back(path);
  if (bundles.empty()) return;
  const std::vector<GpuSample> samples = sample_gpus();
  if (samples.empty()) return;
  for (const fs::path& bundle : bundles) write_file(bundle, samples_json(samples));
}

Json others_on(const bundles::Source& source, const std::string& uuid) {
  const Json devices = devices_of(source);
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
                        {"bytes", bytes}});
    }
    return others;
  }
  return nullptr;
}

std::string others_on_text(const Json& others) {
  std::string text;
  for (std::size_t i = 0; i < std::min(others.size(), kShownProcesses); ++i) {
    const auto bytes = number_of(others[i], "bytes");
    text += fmt::format("    also used by {} (pid {}){}\n",
                        clip(text_of(others[i], "program").value_or("a program"), 32),
                        *number_of(others[i], "pid"), bytes ? ": " + size_text(*bytes) : "");
  }
  if (others.size() > kShownProcesses)
    text +=
        fmt::format("    and by {}\n", plural(others.size() - kShownProcesses, "other", "others"));
  return text;
}

}  // namespace oomrec::tools::processes
