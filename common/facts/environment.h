// "environment.json": the machine and the process around the failure; and the process as the
// commands print it.
#pragma once

#include <concepts>
#include <optional>

#include "common/facts/device.h"

namespace oomrec::facts {

// Members of the file that commands read by themselves.
inline constexpr std::string_view kVariablesKey = "environment", kRollupKey = "smaps_rollup",
                                  kSharedKey = "shared_bytes";

// What derives from these has the members that describe() names.
struct Process {};
struct Environment {};
struct Cgroup {};
struct Heap {};
struct Gpu {};

void describe_process(auto& v, auto& of) {
  v.field("pid", of.pid, "its number");
  v.field("ppid", of.parent_pid, "its parent's");
  v.field("start_utc", TextOrNull{of.start_utc, "definitions.json#/$defs/time_utc"},
          "when the recording began: the start of the process, or `oomrec attach`");
  v.field("argv", of.argv, "its command line");
  v.field("executable", TextOrNull{of.executable}, "the file that it runs");
  v.field("cwd", TextOrNull{of.working_directory}, "its working directory");
}

template <std::derived_from<Process> Fact>
struct Section<Fact> {
  static constexpr std::string_view key = "process";
  static constexpr std::string_view meaning = "the recorded process";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& of) {
    describe_process(v, of);
    v.field("python", TextOrNull{of.python}, "the version of its interpreter");
    v.field("drivers", of.drivers,
            "the GPU drivers that the program reached: `hooks` as text, `path` of the library, "
            "`version` that it reports (0: not asked). `linked`, `by_dlsym` and `by_resolver` "
            "(cuGetProcAddress, hipGetProcAddress) count the functions first reached in that way; "
            "`wrapped` counts the library's functions that the recorder observes");
  }
};

// A piece of the heap.
struct HeapArea {
  std::uint64_t start = 0, bytes = 0;
  std::optional<std::uint64_t> resident_bytes;
  bool is_main = false;
};

template <>
struct Section<HeapArea> {
  static constexpr std::string_view key = "heap_area";
  static constexpr std::string_view meaning = "a piece of the heap";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& area) {
    v.field("start", area.start, "its address");
    v.field("bytes", area.bytes, "its size");
    v.field("resident_bytes", area.resident_bytes, "`null` beyond 4 GiB");
    v.field("main", Flag{area.is_main},
            "whether it is the mapping [heap], or a piece of a thread's arena");
  }
};

template <std::derived_from<Heap> Fact>
struct Section<Fact> {
  static constexpr std::string_view key = "heap";
  static constexpr std::string_view meaning = "the memory of glibc's allocator";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& heap) {
    v.field("areas", heap.areas, "its pieces, at most 512");
    v.field("left_out", heap.left_out, "the number of the others");
  }
};

template <std::derived_from<Gpu> Fact>
struct Section<Fact> {
  static constexpr std::string_view key = "gpu";
  static constexpr std::string_view meaning = "a GPU that the program used";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& of) {
    const session::Device& device = of.device;
    const bool polled = device.polled_ns != 0;
    v.field("vendor", named(device.vendor, kVendors), "its driver");
    v.field("ordinal", device.ordinal, "the driver's number");
    v.field("uuid", of.uuid, "identifies the device: `GPU-…`");
    v.field("name", Name{device.name}, "as the driver names it");
    v.field("driver_version", TextOrNull{of.driver_version}, "as the driver reports it");
    v.field("driver_path", TextOrNull{of.driver_path}, "the driver's library");
    v.field("total_bytes", known_if(polled, device.total_bytes.load()),
            "as the driver last reported");
    v.field("free_bytes", known_if(polled, device.free_bytes.load()), "likewise");
    v.field("limit_bytes", known_if(device.limit_bytes != 0, device.limit_bytes), "`--limit-gpu`");
    v.field("counted_bytes", device.counted_bytes(), "this process' memory there");
    v.field("peak_bytes", device.peak_bytes.load(), "the most of it");
  }
};

template <class Text>
struct Module {
  Text path{}, build_id{};
};

template <class Text>
struct Section<Module<Text>> {
  static constexpr std::string_view key = "module";
  static constexpr std::string_view meaning = "a file that the process has mapped";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& module) {
    v.field("path", TextOrNull{module.path}, "of the file");
    v.field("build_id", TextOrNull{module.build_id}, "its build-id");
  }
};

// The members of "rlimits", and of "cgroup": each with the line or file of the kernel that it is
// from.
struct ResourceLimit {
  std::string_view key, line;  // of /proc/PID/limits
};
inline constexpr ResourceLimit kResourceLimits[] = {
    {"as", "Max address space"},  {"data", "Max data size"},        {"stack", "Max stack size"},
    {"rss", "Max resident set"},  {"memlock", "Max locked memory"}, {"nproc", "Max processes"},
    {"nofile", "Max open files"}, {"fsize", "Max file size"},       {"core", "Max core file size"},
};
struct CgroupFile {
  std::string_view key, version2, version1;
  std::string_view memory;  // what version 1 counts in the file besides swap; empty: nothing
};
inline constexpr std::string_view kUsedByMemory = "memory.usage_in_bytes",
                                  kMostByMemory = "memory.limit_in_bytes";
inline constexpr CgroupFile kCgroupFiles[] = {
    {"current_bytes", "memory.current", kUsedByMemory, {}},
    {"max_bytes", "memory.max", kMostByMemory, {}},
    {"high_bytes", "memory.high", "memory.soft_limit_in_bytes", {}},
    {"swap_current_bytes", "memory.swap.current", "memory.memsw.usage_in_bytes", kUsedByMemory},
    {"swap_max_bytes", "memory.swap.max", "memory.memsw.limit_in_bytes", kMostByMemory},
};

template <std::derived_from<Cgroup> Fact>
struct Section<Fact> {
  static constexpr std::string_view key = "cgroup";
  static constexpr std::string_view meaning = "the memory cgroup";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& of) {
    v.field("version", of.version, "1 or 2");
    v.field("path", of.path, "below the root of the hierarchy");
    for (const CgroupFile& file : kCgroupFiles)
      v.field(file.key, of.value(file), "in bytes, `\"unlimited\"`, or `null`: unknown");
    v.field(kSharedKey, of.shared_bytes(),
            "what of its memory is shared (tmpfs, memfds, System V), by memory.stat");
  }
};

template <std::derived_from<Environment> Fact>
struct Section<Fact> {
  static constexpr std::string_view key = "environment";
  static constexpr std::string_view meaning = "the machine and the process around the failure";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& of) {
    v.field("schema_version", 1U, "1");
    v.field("host", TextOrNull{of.host}, "the machine's name");
    v.object("kernel", JsonLayout::one_line, "as `uname` has it", [&](auto& kernel) {
      kernel.field("release", TextOrNull{of.kernel.release}, "`6.1.0`");
      kernel.field("version", TextOrNull{of.kernel.version}, "of the build");
      kernel.field("machine", TextOrNull{of.kernel.machine}, "`x86_64`");
    });
    describe_process(v, of);
    v.field("ram_bytes", of.ram_bytes, "of the machine");
    v.field("swap_bytes", of.swap_bytes, "of the machine");
    v.field("rlimits", of.rlimits, "resource limits: soft and hard; `\"unlimited\"`");
    v.field("cgroup", of.cgroup, "the memory cgroup");
    v.field("meminfo", of.meminfo, "of the machine, in bytes, with the kernel's keys");
    v.field("pressure", of.pressure, "PSI of memory, in percent and microseconds");
    v.field(kRollupKey, of.smaps_rollup,
            "of the process, in bytes, with the kernel's keys; `null` above 32 GiB");
    v.field("heap", of.heap, "the memory of glibc's allocator");
    v.field("gpus", of.gpus, "each GPU that the program used; `null` without any");
    v.object("versions", JsonLayout::lines, "of what takes part", [&](auto& versions) {
      versions.field("oomrec", TextOrNull{of.versions.oomrec}, "of the recorder");
      versions.field("kernel", TextOrNull{of.kernel.release}, "as `kernel.release`");
      versions.field("glibc", TextOrNull{of.versions.glibc}, "of the C library");
      versions.field("interpreter", TextOrNull{of.versions.interpreter}, "`Python 3.12.4`");
      versions.field("driver", TextOrNull{of.versions.driver}, "`CUDA 13.5`");
    });
    v.field("modules", of.modules, "the files that the process has mapped");
    v.field(kVariablesKey, of.variables, "see below");
  }
};

}  // namespace oomrec::facts
