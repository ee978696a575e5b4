#include "tools/processes/attach/gpu_memory.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>

#include "common/session/attach_pages.h"
#include "tools/processes/attach/recorder_copies.h"
#include "tools/processes/attach/remote_call.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/gpus/nvml.h"

namespace oomrec::tools::processes {

using session::GpuBeforeAttach;

namespace {

bool is_driver(std::string_view path) {
  constexpr std::array<std::string_view, 2> kNames{"libcuda.so", "libamdhip64.so"};
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(kNames, [&](std::string_view name) { return file.starts_with(name); });
}

void add_looked_up_words(const RemoteMemory& memory, const std::vector<RemoteModule>& modules,
                         const std::vector<RemoteMapping>& mappings,
                         const std::map<std::uint64_t, std::string>& functions,
                         GpuBeforeAttach& to) {
  if (functions.empty()) return;
  for (const RemoteModule& module : modules) {
    if (is_driver(module.path()) || is_recorder(module)) continue;
    for_each_variable(
        memory, mappings, module, Variables::writable,
        [&](std::uint64_t address, std::uint64_t value) {
          if (to.word_count < GpuBeforeAttach::kMostWords && functions.contains(value))
            to.words[to.word_count++] = address;
        });
  }
}

// NVML's pids are those of the machine.
bool in_machines_pid_namespace() {
  constexpr ino_t kInitial = 0xEFFFFFFC;  // PROC_PID_INIT_INO
  struct stat own {};
  return stat("/proc/self/ns/pid", &own) == 0 && own.st_ino == kInitial;
}

// "GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"; false: it is not such a text.
bool read_uuid(std::string_view text, std::uint8_t (&uuid)[16]) {
  constexpr std::string_view kPrefix = "GPU-";
  if (!text.starts_with(kPrefix)) return false;
  std::string digits{text.substr(kPrefix.size())};
  std::erase(digits, '-');
  if (digits.size() != 2 * sizeof uuid) return false;
  for (std::size_t i = 0; i < sizeof uuid; ++i) {
    const char* const pair = digits.data() + 2 * i;
    if (std::from_chars(pair, pair + 2, uuid[i], 16).ptr != pair + 2) return false;
  }
  return true;
}

void add_device_memory(pid_t pid, GpuBeforeAttach& to) {
  if (!in_machines_pid_namespace()) return;
  for (const GpuSample& sample : sample_gpus())
    for (const GpuProcess& process : sample.processes) {
      if (process.pid != pid || !process.bytes || to.device_count == GpuBeforeAttach::kMostDevices)
        continue;
      GpuBeforeAttach::Device& device = to.devices[to.device_count];
      if (!read_uuid(sample.uuid, device.uuid)) continue;
      device.bytes = *process.bytes;
      ++to.device_count;
    }
}

}  // namespace

std::map<std::uint64_t, std::string> wrapped_driver_functions(
    const std::vector<RemoteModule>& modules, const RemoteModule& copy) {
  std::map<std::uint64_t, std::string> functions;
  for (const RemoteModule& module : modules)
    if (is_driver(module.path()))
      for (const RemoteSymbol& symbol : module.symbols())
        if (copy.address_of(symbol.name) != 0) functions.emplace(symbol.address, symbol.name);
  return functions;
}

void attach_gpu_memory(pid_t pid) {
  const RemoteMemory memory{pid};
  const std::vector<RemoteMapping> mappings = memory.mappings();
  if (std::ranges::none_of(mappings,
                           [](const RemoteMapping& mapping) { return is_driver(mapping.path); }))
    return;
  const std::vector<RemoteModule> modules = remote_modules(memory);
  const RemoteModule* const copy = recording_copy(memory, modules);
  const std::uint64_t page = copy != nullptr ? copy->address_of("oomrec_gpu_before_attach") : 0;
  if (page == 0) return;
  auto before = std::make_unique<GpuBeforeAttach>();
  add_device_memory(pid, *before);
  add_looked_up_words(memory, modules, mappings, wrapped_driver_functions(modules, *copy), *before);
  if (before->word_count == 0 && before->device_count == 0) return;
  memory.write(page, before.get(), sizeof *before);
  call_remotely({.pid = pid, .function = copy->address_of("oomrec_attach_gpu")});
}

}  // namespace oomrec::tools::processes
