// environment.json: the machine and the process around the failure.
//
// Read from the process' /proc while it exists; for a dead process, what the session does not hold
// is null. Environment variables come from a list (environment_variables.h). Secrets in argv were
// masked when the session was created (common/session/secrets.h); those in variables, as in the
// command of OOMREC_ON_OOM_EXEC, are masked here.
#include <sys/syscall.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstring>

#include "common/bundle/environment_variables.h"
#include "common/bundle/files.h"
#include "common/bundle/heap_areas.h"
#include "common/limits/cgroup.h"
#include "common/machine/page.h"
#include "common/session/secrets.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "common/text/device_text.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

// Above this size smaps_rollup is skipped: the kernel walks every page of the process to make it.
constexpr std::uint64_t kMaxRollupBytes = std::uint64_t{32} << 30;
constexpr unsigned kMaxAreas = 512;
constexpr std::size_t kCopiedPathBytes = 512;  // of a cgroup

std::string_view next_line(std::string_view& text) noexcept {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view next_word(std::string_view& text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

bool parse_number(std::string_view text, std::uint64_t& value) noexcept {
  value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return !text.empty();
}

class Environment {
 public:
  Environment(Job& job, text::JsonWriter& json) noexcept
      : job_(job),
        json_(json),
        header_(job.view.header()),
        alive_(job.cause.alive && is_same_process()) {}

  void write() noexcept;

 private:
  std::string_view read(const char* path) noexcept;
  std::string_view read_process(std::string_view file) noexcept;
  bool is_same_process() noexcept;
  void write_command() noexcept;
  void write_kernel() noexcept;
  void write_limits() noexcept;
  void write_cgroup() noexcept;
  std::string_view read_cgroup(std::string_view path, bool version1,
                               std::string_view file) noexcept;
  void write_swap_of_version1(std::string_view path, std::string_view with_swap,
                              std::string_view memory_file) noexcept;
  void write_sizes(std::string_view text) noexcept;
  void write_pressure() noexcept;
  void write_rollup() noexcept;
  void write_heap() noexcept;
  void write_versions() noexcept;
  void write_gpus() noexcept;
  void write_modules() noexcept;
  void write_variables() noexcept;
  void limit_value(std::string_view word) noexcept;

  Job& job_;
  text::JsonWriter& json_;
  const session::Header& header_;
  utsname kernel_{};
  const bool alive_;
};

// A file's text, in Workspace::text until the next read; empty when it cannot be read.
std::string_view Environment::read(const char* path) noexcept {
  const long bytes = system::read_file_at(AT_FDCWD, path, job_.work.text, sizeof job_.work.text);
  return {job_.work.text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

std::string_view Environment::read_process(std::string_view file) noexcept {
  text::Text path{job_.work.line};
  path.add(system::g_roots.proc).add('/').signed_number(header_.pid).add('/').add(file);
  return read(path.c_str());
}

// The pid may have been reused: start times must agree.
bool Environment::is_same_process() noexcept {
  std::uint64_t ticks = 0;
  return parse_number(system::stat_field(read_process("stat"), 22), ticks) &&
         ticks == header_.start_ticks;
}

void Environment::write_command() noexcept {
  json_.key("argv");
  std::string_view command = job_.view.string(header_.command_line);
  if (command.empty()) return json_.null();
  json_.begin_array();
  while (!command.empty()) {
    const std::string_view argument = command.substr(0, command.find('\0'));
    command.remove_prefix(std::min(argument.size() + 1, command.size()));
    json_.string(argument);
  }
  json_.end_array();
}

void Environment::write_kernel() noexcept {
  json_.key("kernel").begin_object(text::JsonLayout::one_line);
  const bool known = system::fallible_call(SYS_uname, reinterpret_cast<long>(&kernel_)) == 0;
  json_.key("release").string_or_null(known ? kernel_.release : "");
  json_.key("version").string_or_null(known ? kernel_.version : "");
  json_.key("machine").string_or_null(known ? kernel_.machine : "");
  json_.end_object();
}

void Environment::limit_value(std::string_view word) noexcept {
  std::uint64_t value = 0;
  if (word == "unlimited") return json_.string(word);
  parse_number(word, value) ? json_.number(value) : json_.null();
}

// "Max address space     unlimited            unlimited            bytes"
void Environment::write_limits() noexcept {
  struct Limit {
    std::string_view line, key;
  };
  constexpr Limit kLimits[] = {
      {"Max address space", "as"},      {"Max data size", "data"},
      {"Max stack size", "stack"},      {"Max resident set", "rss"},
      {"Max locked memory", "memlock"}, {"Max processes", "nproc"},
      {"Max open files", "nofile"},     {"Max file size", "fsize"},
      {"Max core file size", "core"},
  };
  json_.key("rlimits");
  std::string_view text = alive_ ? read_process("limits") : std::string_view{};
  if (text.empty()) return json_.null();
  json_.begin_object();
  for (const Limit& limit : kLimits) {
    const auto at = text.find(limit.line);
    std::string_view rest =
        at == std::string_view::npos ? std::string_view{} : text.substr(at + limit.line.size());
    json_.key(limit.key).begin_object(text::JsonLayout::one_line);
    json_.key("soft");
    limit_value(next_word(rest));
    json_.key("hard");
    limit_value(next_word(rest));
    json_.end_object();
  }
  json_.end_object();
}

// The word in a memory cgroup's file. Inside a container `path` is the host's and does not exist;
// there the container's cgroup is the root. Valid until the next read.
std::string_view Environment::read_cgroup(std::string_view path, bool version1,
                                          std::string_view file) noexcept {
  const std::string_view root = version1 ? "/memory" : "";
  for (const std::string_view inside : {path == "/" ? "" : path, std::string_view{}}) {
    text::Text full{job_.work.line, sizeof job_.work.line - kCopiedPathBytes};
    full.add(system::g_roots.cgroup).add(root).add(inside).add('/').add(file);
    std::string_view value = read(full.c_str());
    if (!value.empty()) return next_word(value);
  }
  return {};
}

// Version 1 counts memory and swap together. Null where swap is not counted.
void Environment::write_swap_of_version1(std::string_view path, std::string_view with_swap,
                                         std::string_view memory_file) noexcept {
  std::uint64_t both = 0, memory = 0;
  if (!parse_number(read_cgroup(path, true, with_swap), both) ||
      !parse_number(read_cgroup(path, true, memory_file), memory))
    return json_.null();
  if (both >= limit::kNoLimitOfV1) return json_.string("unlimited");
  json_.number(both > memory ? both - memory : 0);
}

// "0::/user.slice" (version 2) or "5:memory:/user.slice" (version 1).
void Environment::write_cgroup() noexcept {
  struct File {
    std::string_view key, version2, version1, memory;
  };
  constexpr std::string_view kUsed = "memory.usage_in_bytes", kMost = "memory.limit_in_bytes";
  constexpr File kFiles[] = {
      {"current_bytes", "memory.current", kUsed, {}},
      {"max_bytes", "memory.max", kMost, {}},
      {"high_bytes", "memory.high", "memory.soft_limit_in_bytes", {}},
      {"swap_current_bytes", "memory.swap.current", "memory.memsw.usage_in_bytes", kUsed},
      {"swap_max_bytes", "memory.swap.max", "memory.memsw.limit_in_bytes", kMost},
  };
  json_.key("cgroup");
  std::string_view text = alive_ ? read_process("cgroup") : std::string_view{};
  std::string_view path;
  bool version1 = false;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const auto memory = line.find(":memory:");
    if (memory != std::string_view::npos) {
      path = line.substr(memory + 8);
      version1 = true;
    } else if (path.empty() && line.starts_with("0::")) {
      path = line.substr(3);
    }
  }
  // A copy, because later reads overwrite the text.
  char* const path_copy = job_.work.line + sizeof job_.work.line - kCopiedPathBytes;
  if (path.empty() || text::Text{path_copy, kCopiedPathBytes}.add(path).truncated())
    return json_.null();
  json_.begin_object();
  json_.key("version").number(version1 ? 1 : 2);
  json_.key("path").string(path_copy);
  for (const File& file : kFiles) {
    json_.key(file.key);
    if (version1 && !file.memory.empty()) {
      write_swap_of_version1(path_copy, file.version1, file.memory);
      continue;
    }
    const std::string_view word =
        read_cgroup(path_copy, version1, version1 ? file.version1 : file.version2);
    word == "max" ? json_.string("unlimited") : limit_value(word);
  }
  json_.end_object();
}

// Lines such as "MemTotal:  16314484 kB" as an object of bytes.
void Environment::write_sizes(std::string_view text) noexcept {
  if (text.empty()) return json_.null();
  json_.begin_object();
  while (!text.empty()) {
    std::string_view line = next_line(text);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    line.remove_prefix(colon + 1);
    std::uint64_t value = 0;
    if (!parse_number(next_word(line), value) || key.find(' ') != std::string_view::npos) continue;
    json_.key(key).number(next_word(line) == "kB" ? value * 1024 : value);
  }
  json_.end_object();
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", in percent and microseconds.
void Environment::write_pressure() noexcept {
  json_.key("pressure");
  text::Text path{job_.work.line};
  std::string_view text = read(path.add(system::g_roots.proc).add("/pressure/memory").c_str());
  if (!job_.cause.alive || text.empty()) return json_.null();
  json_.begin_object();
  while (!text.empty()) {
    std::string_view line = next_line(text);
    json_.key(next_word(line)).begin_object(text::JsonLayout::one_line);
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
      const auto equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view value = word.substr(equals + 1);
      const auto point = value.find('.');
      std::uint64_t whole = 0;
      std::uint64_t hundredths = 0;
      json_.key(word.substr(0, equals));
      if (!parse_number(value.substr(0, point), whole)) {
        json_.null();
      } else if (point == std::string_view::npos) {
        json_.number(whole);
      } else {
        parse_number(value.substr(point + 1), hundredths);
        json_.fraction(whole * 100 + hundredths, 2);
      }
    }
    json_.end_object();
  }
  json_.end_object();
}

void Environment::write_rollup() noexcept {
  json_.key("smaps_rollup");
  std::uint64_t pages = 0;
  std::string_view statm = alive_ ? read_process("statm") : std::string_view{};
  next_word(statm);
  const bool small =
      parse_number(next_word(statm), pages) && pages * machine::page_bytes() < kMaxRollupBytes;
  write_sizes(small ? read_process("smaps_rollup") : std::string_view{});
}

void Environment::write_heap() noexcept {
  json_.key("heap");
  HeapAreas areas{header_.pid, job_.work.text};
  if (!alive_ || !areas.is_open()) return json_.null();
  json_.begin_object();
  json_.key("areas").begin_array();
  std::uint64_t left_out = 0;
  unsigned count = 0;
  for (HeapArea area; areas.next(area);) {
    if (++count > kMaxAreas) {
      ++left_out;
      continue;
    }
    json_.begin_object(text::JsonLayout::one_line);
    json_.key("start").number(area.start);
    json_.key("bytes").number(area.bytes());
    json_.key("resident_bytes");
    area.resident_bytes == kNotCounted ? json_.null() : json_.number(area.resident_bytes);
    json_.key("main").boolean(area.is_main);
    json_.end_object();
  }
  json_.end_array();
  json_.key("left_out").number(left_out);
  json_.end_object();
}

void Environment::write_versions() noexcept {
  json_.key("versions").begin_object();
  json_.key("oomrec").string_or_null(
      {header_.oomrec_version, strnlen(header_.oomrec_version, sizeof header_.oomrec_version)});
  json_.key("kernel").string_or_null(kernel_.release);
  json_.key("glibc").string_or_null(job_.cause.glibc_version);
  json_.key("interpreter");
  const std::uint32_t python = header_.python.version_hex;
  char text[32];
  python == 0 ? json_.null()
              : json_.string(text::Text{text}
                                 .add("Python ")
                                 .number(python >> 24)
                                 .add('.')
                                 .number((python >> 16) & 255)
                                 .add('.')
                                 .number((python >> 8) & 255)
                                 .view());
  char driver[64];
  json_.key("driver").string_or_null(text::driver_versions(job_.view, driver));
  json_.end_object();
}

void Environment::write_gpus() noexcept {
  json_.key("gpus");
  const std::uint64_t count = job_.view.count(session::TableId::devices);
  if (count < 2) return json_.null();
  json_.begin_array();
  for (std::uint32_t i = 1; i < count; ++i) {
    session::Device device;
    if (text::read_device(job_.view, i, device)) text::write_gpu(json_, job_.view, device);
  }
  json_.end_array();
}

void Environment::write_modules() noexcept {
  json_.key("modules").begin_array();
  session::Module module{};
  char build_id[65];
  const std::uint64_t count = job_.view.count(session::TableId::modules);
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!job_.view.read(session::TableId::modules, i, module)) continue;
    if (module.end == 0 && module.path == 0) continue;  // free
    json_.begin_object(text::JsonLayout::one_line);
    json_.key("path").string_or_null(job_.view.string(module.path));
    json_.key("build_id").string_or_null(text::build_id_text(module, build_id));
    json_.end_object();
  }
  json_.end_array();
}

void Environment::write_variables() noexcept {
  json_.key("environment");
  std::string_view text = alive_ ? read_process("environ") : std::string_view{};
  if (text.empty()) return json_.null();
  json_.begin_object();
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || !is_listed_variable(line.substr(0, equals))) continue;
    // In place: `text` is in Workspace::text.
    char* const start = job_.work.text + (line.data() - job_.work.text);
    const std::string_view masked{start, session::mask_secrets(start, line.size())};
    json_.key(line.substr(0, equals)).string(masked.substr(std::min(equals + 1, masked.size())));
  }
  json_.end_object();
}

void Environment::write() noexcept {
  json_.begin_object();
  json_.key("schema_version").number(1);
  json_.key("host").string_or_null({header_.host, strnlen(header_.host, sizeof header_.host)});
  write_kernel();
  json_.key("pid").signed_number(header_.pid);
  json_.key("ppid").signed_number(header_.parent_pid);
  json_.key("start_utc").utc(header_.start_realtime_ns);
  write_command();
  json_.key("executable").string_or_null(job_.view.string(header_.executable));
  json_.key("cwd").string_or_null(job_.view.string(header_.working_directory));
  json_.key("ram_bytes");
  header_.ram_bytes == 0 ? json_.null() : json_.number(header_.ram_bytes);
  json_.key("swap_bytes");
  header_.ram_bytes == 0 ? json_.null() : json_.number(header_.swap_bytes);
  write_limits();
  write_cgroup();
  json_.key("meminfo");
  text::Text path{job_.work.line};
  path.add(system::g_roots.proc).add("/meminfo");
  write_sizes(job_.cause.alive ? read(path.c_str()) : std::string_view{});
  write_pressure();
  write_rollup();
  write_heap();
  write_gpus();
  write_versions();
  write_modules();
  write_variables();
  json_.end_object();
}

}  // namespace

bool write_environment(InHook hook, Job& job) noexcept {
  JsonFile file{hook, job, "environment.json"};
  Environment{job, file.json()}.write();
  return file.done();
}

}  // namespace oomrec::bundle
