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
#include <optional>

#include "common/bundle/environment_variables.h"
#include "common/bundle/files.h"
#include "common/bundle/heap_areas.h"
#include "common/facts/environment.h"
#include "common/facts/writer.h"
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
  void write_limits() noexcept;
  void write_cgroup() noexcept;
  std::string_view read_cgroup(std::string_view path, bool version1,
                               std::string_view file) noexcept;
  std::string_view word_of_cgroup(std::string_view path, bool version1,
                                  std::string_view file) noexcept;
  void write_cgroup_value(std::string_view path, bool version1, const facts::CgroupFile&) noexcept;
  void write_swap_of_version1(std::string_view path, std::string_view with_swap,
                              std::string_view memory_file) noexcept;
  void write_sizes(std::string_view text) noexcept;
  void write_memory() noexcept;
  void write_pressure() noexcept;
  void write_rollup() noexcept;
  void write_heap() noexcept;
  void write_gpus() noexcept;
  void write_modules() noexcept;
  void write_variables() noexcept;
  void limit_value(std::string_view word) noexcept;

  using Self = Environment;
  // A value that is read when it is written: all share the buffer that they are read into.
  template <void (Environment::*kWrite)() noexcept>
  struct Part {
    Environment& of;
    void write(text::JsonWriter&) const noexcept { (of.*kWrite)(); }
  };
  struct File;

  Job& job_;
  text::JsonWriter& json_;
  const session::Header& header_;
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

void Environment::limit_value(std::string_view word) noexcept {
  std::uint64_t value = 0;
  if (word == "unlimited") return json_.string(word);
  parse_number(word, value) ? json_.number(value) : json_.null();
}

// "Max address space     unlimited            unlimited            bytes"
void Environment::write_limits() noexcept {
  std::string_view text = alive_ ? read_process("limits") : std::string_view{};
  if (text.empty()) return json_.null();
  json_.begin_object();
  for (const facts::ResourceLimit& limit : facts::kResourceLimits) {
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

// A memory cgroup's file. Inside a container `path` is the host's and does not exist; there the
// container's cgroup is the root. Valid until the next read.
std::string_view Environment::read_cgroup(std::string_view path, bool version1,
                                          std::string_view file) noexcept {
  const std::string_view root = version1 ? "/memory" : "";
  for (const std::string_view inside : {path == "/" ? "" : path, std::string_view{}}) {
    text::Text full{job_.work.line, sizeof job_.work.line - kCopiedPathBytes};
    full.add(system::g_roots.cgroup).add(root).add(inside).add('/').add(file);
    const std::string_view text = read(full.c_str());
    if (!text.empty()) return text;
  }
  return {};
}

std::string_view Environment::word_of_cgroup(std::string_view path, bool version1,
                                             std::string_view file) noexcept {
  std::string_view text = read_cgroup(path, version1, file);
  return next_word(text);
}

// Version 1 counts memory and swap together. Null where swap is not counted.
void Environment::write_swap_of_version1(std::string_view path, std::string_view with_swap,
                                         std::string_view memory_file) noexcept {
  std::uint64_t both = 0, memory = 0;
  if (!parse_number(word_of_cgroup(path, true, with_swap), both) ||
      !parse_number(word_of_cgroup(path, true, memory_file), memory))
    return json_.null();
  if (both >= limit::kNoLimitOfV1) return json_.string("unlimited");
  json_.number(both > memory ? both - memory : 0);
}

void Environment::write_cgroup_value(std::string_view path, bool version1,
                                     const facts::CgroupFile& file) noexcept {
  if (version1 && !file.memory.empty())
    return write_swap_of_version1(path, file.version1, file.memory);
  const std::string_view word =
      word_of_cgroup(path, version1, version1 ? file.version1 : file.version2);
  word == "max" ? json_.string("unlimited") : limit_value(word);
}

// "0::/user.slice" (version 2) or "5:memory:/user.slice" (version 1).
void Environment::write_cgroup() noexcept {
  struct Value {
    Environment& environment;
    std::string_view path;
    bool version1;
    const facts::CgroupFile& file;
    void write(text::JsonWriter&) const noexcept {
      environment.write_cgroup_value(path, version1, file);
    }
  };
  struct Cgroup : facts::Cgroup {
    Environment& environment;
    unsigned version;
    std::string_view path;
    Value value(const facts::CgroupFile& file) const noexcept {
      return {environment, path, version == 1, file};
    }
    std::optional<std::uint64_t> shared_bytes() const noexcept {
      const std::string_view statistics =
          environment.read_cgroup(path, version == 1, "memory.stat");
      if (statistics.empty()) return std::nullopt;
      return limit::shared_bytes_in(statistics);
    }
  };
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
  facts::write(json_, Cgroup{{}, *this, version1 ? 1U : 2U, path_copy});
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

void Environment::write_memory() noexcept {
  text::Text path{job_.work.line};
  path.add(system::g_roots.proc).add("/meminfo");
  write_sizes(job_.cause.alive ? read(path.c_str()) : std::string_view{});
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", in percent and microseconds.
void Environment::write_pressure() noexcept {
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
  std::uint64_t pages = 0;
  std::string_view statm = alive_ ? read_process("statm") : std::string_view{};
  next_word(statm);
  const bool small =
      parse_number(next_word(statm), pages) && pages * machine::page_bytes() < kMaxRollupBytes;
  write_sizes(small ? read_process("smaps_rollup") : std::string_view{});
}

void Environment::write_heap() noexcept {
  struct Areas {
    HeapAreas& all;
    std::uint64_t& left_out;
    void write(text::JsonWriter& json) const noexcept {
      json.begin_array();
      unsigned count = 0;
      for (HeapArea area; all.next(area);) {
        const bool is_counted = area.resident_bytes != kNotCounted;
        if (++count > kMaxAreas)
          ++left_out;
        else
          facts::write(
              json, facts::HeapArea{area.start, area.bytes(),
                                    is_counted ? std::optional{area.resident_bytes} : std::nullopt,
                                    area.is_main});
      }
      json.end_array();
    }
  };
  struct Heap : facts::Heap {
    Areas areas;
    const std::uint64_t& left_out;
  };
  HeapAreas areas{header_.pid, job_.work.text};
  if (!alive_ || !areas.is_open()) return json_.null();
  std::uint64_t left_out = 0;
  facts::write(json_, Heap{{}, {areas, left_out}, left_out});
}

void Environment::write_gpus() noexcept {
  struct Gpu : facts::Gpu {
    const session::Device& device;
    std::string_view uuid, driver_version, driver_path;
  };
  const std::uint64_t count = job_.view.count(session::TableId::devices);
  if (count < 2) return json_.null();
  json_.begin_array();
  for (std::uint32_t i = 1; i < count; ++i) {
    session::Device device;
    if (!text::read_device(job_.view, i, device)) continue;
    const session::Vendor vendor = text::vendor_of(device);
    const session::Driver& driver = header_.drivers[static_cast<std::size_t>(vendor)];
    char uuid[48], version[32];
    text::Text uuid_text{uuid}, version_text{version};
    text::add_uuid(uuid_text, device);
    if (driver.version != 0) text::add_version(version_text, vendor, driver.version);
    facts::write(
        json_,
        Gpu{{}, device, uuid_text.view(), version_text.view(), job_.view.string(driver.path)});
  }
  json_.end_array();
}

void Environment::write_modules() noexcept {
  json_.begin_array();
  session::Module module{};
  char build_id[65];
  const std::uint64_t count = job_.view.count(session::TableId::modules);
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!job_.view.read(session::TableId::modules, i, module)) continue;
    if (module.end == 0 && module.path == 0) continue;  // free
    facts::write(json_, facts::Module<std::string_view>{job_.view.string(module.path),
                                                        text::build_id_text(module, build_id)});
  }
  json_.end_array();
}

void Environment::write_variables() noexcept {
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

struct Environment::File : facts::Environment {
  std::string_view host;
  struct {
    std::string_view release, version, machine;
  } kernel;
  std::int32_t pid, parent_pid;
  std::string_view start_utc;
  Part<&Self::write_command> argv;
  std::string_view executable, working_directory;
  std::optional<std::uint64_t> ram_bytes, swap_bytes;
  Part<&Self::write_limits> rlimits;
  Part<&Self::write_cgroup> cgroup;
  Part<&Self::write_memory> meminfo;
  Part<&Self::write_pressure> pressure;
  Part<&Self::write_rollup> smaps_rollup;
  Part<&Self::write_heap> heap;
  Part<&Self::write_gpus> gpus;
  struct {
    std::string_view oomrec, glibc, interpreter, driver;
  } versions;
  Part<&Self::write_modules> modules;
  Part<&Self::write_variables> variables;
};

std::string_view interpreter_text(std::uint32_t python, text::Text& text) noexcept {
  if (python == 0) return {};
  text.add("Python ").number(python >> 24).add('.').number((python >> 16) & 255);
  return text.add('.').number((python >> 8) & 255).view();
}

void Environment::write() noexcept {
  char start[32], interpreter[32], driver[64];
  text::Text interpreter_buffer{interpreter};
  utsname kernel{};
  if (system::fallible_call(SYS_uname, reinterpret_cast<long>(&kernel)) != 0) kernel = {};
  const auto if_known = [&](std::uint64_t bytes) noexcept {
    return header_.ram_bytes != 0 ? std::optional{bytes} : std::nullopt;
  };
  facts::write(json_, File{{},
                           facts::Name{header_.host}.view(),
                           {kernel.release, kernel.version, kernel.machine},
                           header_.pid,
                           header_.parent_pid,
                           text::Text{start}.utc(header_.start_realtime_ns).view(),
                           {*this},
                           job_.view.string(header_.executable),
                           job_.view.string(header_.working_directory),
                           if_known(header_.ram_bytes),
                           if_known(header_.swap_bytes),
                           {*this},
                           {*this},
                           {*this},
                           {*this},
                           {*this},
                           {*this},
                           {*this},
                           {facts::Name{header_.oomrec_version}.view(), job_.cause.glibc_version,
                            interpreter_text(header_.python.version_hex, interpreter_buffer),
                            text::driver_versions(job_.view, driver)},
                           {*this},
                           {*this}});
}

}  // namespace

bool write_environment(InHook hook, Job& job) noexcept {
  JsonFile file{hook, job, "environment.json"};
  Environment{job, file.json()}.write();
  return file.done();
}

}  // namespace oomrec::bundle
