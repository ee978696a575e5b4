#include "shim/info.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <array>
#include <cstring>

#include "common/session/driver_text.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "recorder/failures/dump_directory.h"
#include "recorder/python/attach.h"
#include "recorder/session/writer.h"

namespace oomrec::shim {
namespace {

// Writes lines of JSON through a small buffer to a descriptor.
class Lines {
 public:
  explicit Lines(int fd) noexcept : fd_(fd) {}

  void fact(std::string_view name, const char* active, std::string_view detail) noexcept {
    text("{\"fact\":\"");
    text(name);
    text("\",\"active\":");
    text(active);
    text(",\"detail\":\"");
    escaped(detail);
    text("\"}\n");
    system::call(SYS_write, fd_, buffer_.data(), used_);
    used_ = 0;
  }

 private:
  void text(std::string_view some) noexcept {
    if (some.size() > buffer_.size() - used_) return;
    std::memcpy(buffer_.data() + used_, some.data(), some.size());
    used_ += some.size();
  }
  void escaped(std::string_view some) noexcept {
    constexpr std::size_t kReservedForEnd = 16;
    for (const char c : some) {
      if (used_ + kReservedForEnd > buffer_.size()) return;
      if (c == '"' || c == '\\') text("\\");
      text({static_cast<unsigned char>(c) < ' ' ? " " : &c, 1});
    }
  }

  const int fd_;
  std::array<char, 1024> buffer_{};
  std::size_t used_ = 0;
};

const char* word(bool value) noexcept { return value ? "true" : "false"; }

// A limit in bytes; `none` is the value that means no limit.
void write_limit(Lines& lines, std::string_view name, std::uint64_t bytes,
                 std::uint64_t none) noexcept {
  char buffer[24];
  system::Text digits{buffer};
  if (bytes != none) digits.number(bytes);
  lines.fact(name, word(bytes != none), digits.view());
}

void write_rlimit(Lines& lines, std::string_view name, int resource) noexcept {
  struct rlimit limit {};
  system::call(SYS_prlimit64, 0, resource, nullptr, &limit);
  write_limit(lines, name, limit.rlim_cur, RLIM_INFINITY);
}

// Whether this process has an interpreter, and why its frames cannot be read.
void write_python(Lines& lines) noexcept {
  stack::python_describe(OutsideHooks::in_hook());
  const session::Python& python = session::g_session.header().python;
  if (python.version_hex == 0)
    return lines.fact("python", "null", "none at start; found if it is loaded later");
  char buffer[256];
  system::Text text{buffer};
  text.number(python.version_hex >> 24);
  (text << '.').number((python.version_hex >> 16) & 0xff);
  (text << '.').number((python.version_hex >> 8) & 0xff);
  const std::string_view problem = session::g_session.view().string(python.status);
  if (!problem.empty()) text << ": " << problem;
  lines.fact("python", word(problem.empty()), text.view());
}

void write_drivers(Lines& lines) noexcept {
  const std::string_view names[session::kVendors] = {"cuda", "hip"};
  for (session::u32 i = 0; i < session::kVendors; ++i) {
    const session::Driver& driver = session::g_session.header().drivers[i];
    char buffer[128];
    system::Text text{buffer};
    session::write_hooks(text, static_cast<session::Vendor>(i), driver);
    lines.fact(names[i], session::was_found(driver) ? "true" : "null", text.view());
  }
}

void write_directories(Lines& lines) noexcept {
  const std::string_view path{session::g_session.path()};
  lines.fact("session", word(!path.empty()),
             path.empty() ? "private memory: lost at SIGKILL" : path.substr(0, path.rfind('/')));
  lines.fact("bundles", "null", recorder::dump_directory());
}

}  // namespace

void write_info(const char* path, const Options& options, const HeapState& heap, bool recording,
                std::string_view recorder_note, const char* library_path) noexcept {
  const long fd =
      system::call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  Lines lines{static_cast<int>(fd)};
  lines.fact("recorder", word(recording), recording ? name_of(options.mode) : recorder_note);
  lines.fact("heap", word(recording && heap.observed), heap.note);
  lines.fact("allocator", "null", heap.allocator);
  lines.fact("operator_new", word(recording && heap.observed),
             heap.has_own_new ? "the allocator's own" : "through malloc");
  lines.fact("mappings", word(recording), "");
  lines.fact("processes", word(recording), "");
  lines.fact("threads", word(recording), "");
  if (recording) {
    write_python(lines);
    write_drivers(lines);
    write_directories(lines);
  }
  write_limit(lines, "soft_limit", options.limit, 0);
  lines.fact("device_limit", word(options.limit_gpu[0] != '\0'), options.limit_gpu);
  write_rlimit(lines, "address_space_limit", RLIMIT_AS);
  write_rlimit(lines, "data_limit", RLIMIT_DATA);
  lines.fact("children", word(options.children), "");
  lines.fact("library", "null", library_path);
  system::call(SYS_close, fd);
}

}  // namespace oomrec::shim
