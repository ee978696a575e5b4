#include "common/bundle/process_group.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "common/machine/page.h"
#include "common/session/vocabulary.h"
#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

const RecordedProcess* parent_of(const RecordedProcess& child,
                                 std::span<const RecordedProcess> all) noexcept {
  const RecordedProcess* parent = nullptr;
  for (const RecordedProcess& other : all) {
    if (other.pid != child.parent_pid || &other == &child || other.start_ticks > child.start_ticks)
      continue;
    if (parent == nullptr || other.start_ticks > parent->start_ticks) parent = &other;
  }
  return parent;
}

// The first member of the group among the ancestors of `process` decides. Bounded, because forged
// pids may form a cycle.
Relation relation_of(const RecordedProcess& process,
                     std::span<const RecordedProcess> all) noexcept {
  const RecordedProcess* at = &process;
  for (std::size_t step = 0; step < all.size(); ++step) {
    at = parent_of(*at, all);
    if (at == nullptr) break;
    if (at->relation == Relation::self) return step == 0 ? Relation::child : Relation::descendant;
    if (at->relation == Relation::child) return Relation::descendant;
    if (at->relation != Relation::none)
      return at->relation == Relation::descendant ? Relation::descendant : Relation::relative;
  }
  return Relation::none;
}

}  // namespace

void set_relations(std::span<RecordedProcess> all) noexcept {
  for (RecordedProcess& process : all) process.relation = Relation::none;
  all[0].relation = Relation::self;
  Relation above = Relation::parent;
  for (const RecordedProcess* at = parent_of(all[0], all);
       at != nullptr && at->relation == Relation::none; at = parent_of(*at, all)) {
    all[static_cast<std::size_t>(at - all.data())].relation = above;
    above = Relation::ancestor;
  }
  for (RecordedProcess& process : all)
    if (process.relation == Relation::none) process.relation = relation_of(process, all);
}

namespace {

constexpr unsigned kMaxScanned = 1000;
constexpr std::size_t kPathBytes = 416;

// A file of /proc/PID.
const char* path_of(std::int32_t pid, std::string_view file, char (&path)[kPathBytes]) noexcept {
  return text::Text{path}.add(system::g_roots.proc).add('/').signed_number(pid).add(file).c_str();
}

std::string_view read_text(const char* path, std::span<char> text) noexcept {
  const long bytes = system::read_file_at(AT_FDCWD, path, text.data(), text.size());
  return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

bool is_in_group(std::int32_t pid, std::span<const RecordedProcess> group) noexcept {
  return std::any_of(group.begin(), group.end(), [pid](const RecordedProcess& process) {
    return process.pid == pid && process.relation != Relation::none;
  });
}

}  // namespace

std::uint64_t resident_bytes(std::int32_t pid) noexcept {
  char path[kPathBytes], text[128];
  std::string_view rest = read_text(path_of(pid, "/statm", path), text);
  system::number_in(rest, &rest);  // address space
  return system::number_in(rest) * machine::page_bytes();
}

int find_largest_others(const char* directory, std::span<const RecordedProcess> group,
                        std::span<char> text, OtherProcess (&out)[kMaxOtherProcesses]) noexcept {
  char path[kPathBytes];
  text::Text name{path};
  name.add(directory).add("/cgroup.procs");
  const long bytes = system::read_file_at(AT_FDCWD, path, text.data(), text.size());
  if (name.truncated() || bytes < 0) return -1;
  std::string_view pids{text.data(), static_cast<std::size_t>(bytes)};
  const auto self = static_cast<std::int32_t>(system::fallible_call(SYS_getpid));
  int count = 0;
  for (unsigned scanned = 0; scanned < kMaxScanned && !pids.empty(); ++scanned) {
    const auto pid = static_cast<std::int32_t>(system::number_in(pids, &pids));
    pids.remove_prefix(std::min<std::size_t>(pids.size(), 1));  // the newline
    if (pid <= 0 || pid == self || is_in_group(pid, group)) continue;
    const OtherProcess found{pid, resident_bytes(pid)};
    OtherProcess* const end = out + count;
    OtherProcess* const slot = std::find_if(
        out, end, [&](const OtherProcess& other) { return other.rss_bytes < found.rss_bytes; });
    if (found.rss_bytes == 0 || slot == std::end(out)) continue;
    if (count < static_cast<int>(kMaxOtherProcesses)) ++count;
    std::move_backward(slot, std::min(end, std::end(out) - 1), out + count);
    *slot = found;
  }
  return count;
}

std::string_view program_of(std::int32_t pid, std::span<char> text) noexcept {
  char path[kPathBytes];
  const long bytes = system::fallible_call(
      SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(path_of(pid, "/exe", path)),
      reinterpret_cast<long>(text.data()), static_cast<long>(text.size()));
  if (bytes > 0) return text::base_name({text.data(), static_cast<std::size_t>(bytes)});
  const std::string_view name = read_text(path_of(pid, "/comm", path), text);
  return name.substr(0, name.find('\n'));
}

}  // namespace oomrec::bundle
