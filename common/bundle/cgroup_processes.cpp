#include "common/bundle/cgroup_processes.h"

#include <sys/syscall.h>

#include <algorithm>

#include "common/calls/calls.h"
#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

constexpr unsigned kMostLookedAt = 1000;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kPathBytes = 416;

// A file of /proc/PID.
const char* path_of(std::int32_t pid, std::string_view file, char (&path)[kPathBytes]) noexcept {
  return text::Text{path}.add(system::g_roots.proc).add('/').signed_number(pid).add(file).c_str();
}

std::string_view read_text(const char* path, std::span<char> text) noexcept {
  const long bytes = calls::read_file(AT_FDCWD, path, text.data(), text.size());
  return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

bool is_of_group(std::int32_t pid, std::span<const Kin> known) noexcept {
  return std::any_of(known.begin(), known.end(), [pid](const Kin& kin) {
    return kin.pid == pid && kin.relation != Relation::none;
  });
}

}  // namespace

std::uint64_t resident_bytes(std::int32_t pid) noexcept {
  char path[kPathBytes], text[128];
  std::string_view rest = read_text(path_of(pid, "/statm", path), text);
  system::number_in(rest, &rest);  // address space
  return system::number_in(rest) * kPageBytes;
}

int largest_neighbours(const char* directory, std::span<const Kin> known, std::span<char> text,
                       Neighbour (&out)[kMostNeighbours]) noexcept {
  char path[kPathBytes];
  text::Text name{path};
  name.add(directory).add("/cgroup.procs");
  const long bytes = calls::read_file(AT_FDCWD, path, text.data(), text.size());
  if (name.truncated() || bytes < 0) return -1;
  std::string_view pids{text.data(), static_cast<std::size_t>(bytes)};
  const auto self = static_cast<std::int32_t>(calls::call(SYS_getpid));
  int count = 0;
  for (unsigned looked_at = 0; looked_at < kMostLookedAt && !pids.empty(); ++looked_at) {
    const auto pid = static_cast<std::int32_t>(system::number_in(pids, &pids));
    pids.remove_prefix(std::min<std::size_t>(pids.size(), 1));  // the end of its line
    if (pid <= 0 || pid == self || is_of_group(pid, known)) continue;
    const Neighbour found{pid, resident_bytes(pid)};
    Neighbour* const end = out + count;
    Neighbour* const place = std::find_if(
        out, end, [&](const Neighbour& other) { return other.rss_bytes < found.rss_bytes; });
    if (found.rss_bytes == 0 || place == std::end(out)) continue;
    if (count < static_cast<int>(kMostNeighbours)) ++count;
    std::move_backward(place, std::min(end, std::end(out) - 1), out + count);
    *place = found;
  }
  return count;
}

std::string_view program_of(std::int32_t pid, std::span<char> text) noexcept {
  char path[kPathBytes];
  const long bytes =
      calls::call(SYS_readlink, reinterpret_cast<long>(path_of(pid, "/exe", path)),
                  reinterpret_cast<long>(text.data()), static_cast<long>(text.size()));
  if (bytes > 0) return text::base_name({text.data(), static_cast<std::size_t>(bytes)});
  const std::string_view name = read_text(path_of(pid, "/comm", path), text);
  return name.substr(0, name.find('\n'));
}

}  // namespace oomrec::bundle
