#include "common/limits/cgroup.h"

#include "common/limits/process_files.h"
#include "common/session/layout.h"
#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::limit {
namespace {

using session::kUnlimited;
using system::Text;

// "…:memory:PATH" in v1, "0::PATH" in v2. Points into `text`.
std::string_view own_path(std::string_view text, std::string_view controller, bool& v1) noexcept {
  std::string_view unified;
  v1 = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers.empty()) unified = path;
    // Also in a list such as "cpu,memory"; no other controller's name contains one of ours.
    if (controllers.find(controller) != controllers.npos) {
      v1 = true;
      return path;
    }
  }
  return unified;
}

// A main thread that has ended is in v1's root.
bool is_below_root(std::string_view text) noexcept {
  bool v1 = false;
  const std::string_view memory = own_path(text, "memory", v1);
  return !text.empty() && (!v1 || memory.size() > 1);
}

}  // namespace

// Each has a buffer, so none may be inlined into another: a hook uses little stack.

[[gnu::noinline]] long read_cgroup_file(const char* directory, const char* file, char* buffer,
                                        std::size_t capacity) noexcept {
  char path[kCgroupPathBytes + 32];
  Text name(path);
  name << directory << file;
  return name.truncated() ? 0 : system::read_file(path, buffer, capacity);
}

[[gnu::noinline]] bool read_cgroup_number(const char* directory, const char* file,
                                          std::uint64_t& value) noexcept {
  char text[64];
  if (read_cgroup_file(directory, file, text, sizeof(text)) <= 0) return false;
  value = text[0] == 'm' ? kUnlimited : system::number_in(text);
  if (value >= kNoLimitOfV1) value = kUnlimited;
  return true;
}

// Version 1's lines of the cgroup alone have no "total_" before them.
std::uint64_t shared_bytes_in(std::string_view memory_stat) noexcept {
  const std::string_view with_descendants = system::field(memory_stat, "total_shmem ");
  return system::number_in(with_descendants.empty() ? system::field(memory_stat, "shmem ")
                                                    : with_descendants);
}

[[gnu::noinline]] std::uint64_t read_cgroup_shared_bytes(const char* directory) noexcept {
  char text[1408];
  const long bytes = read_cgroup_file(directory, "/memory.stat", text, sizeof(text));
  return bytes > 0 ? shared_bytes_in({text, static_cast<std::size_t>(bytes)}) : 0;
}

[[gnu::noinline]] CgroupPath::CgroupPath(InHook, std::string_view controller, const char* file_v1,
                                         const char* file_v2, char (*named)[kCgroupPathBytes],
                                         int process) noexcept {
  char text[1408];
  if (read_process_file(process, "/cgroup", text, sizeof(text), is_below_root) <= 0) return;
  found_ = true;
  const std::string_view own = own_path(text, controller, v1_);
  is_root_ = own.size() <= 1;
  if (named != nullptr) Text(*named) << own;
  Text path(path_);
  path << system::g_roots.cgroup;
  if (v1_) path << '/' << controller;
  root_bytes_ = path.size();
  if (own.size() > 1) path << own;
  bytes_ = path.size();
  std::uint64_t ignored = 0;
  if (!path.truncated() && read(v1_ ? file_v1 : file_v2, ignored)) return;
  // Version 2: without the controller a cgroup is within what bounds its nearest ancestor that has
  // it.
  if (!v1_ && !path.truncated() && read("/cgroup.events", ignored)) {
    while (move_to_parent())
      if (read(file_v2, ignored)) return;
  }
  if (!v1_) {  // beside version 1, version 2 is mounted there
    Text beside(path_);
    beside << system::g_roots.cgroup << "/unified";
    const std::size_t beside_bytes = beside.size();
    if (own.size() > 1) beside << own;
    if (!beside.truncated() && read(file_v2, ignored)) {
      root_bytes_ = beside_bytes;
      bytes_ = beside.size();
      return;
    }
    Text(path_) << system::g_roots.cgroup;
  }
  path_[root_bytes_] = '\0';
  bytes_ = root_bytes_;
}

bool CgroupPath::read(const char* file, std::uint64_t& value) const noexcept {
  return read_cgroup_number(path_, file, value);
}

bool CgroupPath::move_to_parent() noexcept {
  if (bytes_ <= root_bytes_) return false;
  while (bytes_ > root_bytes_ && path_[bytes_ - 1] != '/') --bytes_;
  if (bytes_ > root_bytes_) --bytes_;
  path_[bytes_] = '\0';
  return true;
}

}  // namespace oomrec::limit
