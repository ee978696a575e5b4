#include "common/bundle/directory.h"

#include <sys/file.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

constexpr std::string_view kPrefix = "oom_";
constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kDeleted = ".deleted";  // see retention.cpp
constexpr unsigned kMaxNumber = 9999;
constexpr std::size_t kPart = sizeof(Workspace{}.json) / 4;

bool exists(int directory, const char* name) noexcept {
  struct stat status;
  return system::stat_at(directory, name, status) == 0;
}

// NAME of ".NAME.partial" or ".NAME.deleted"; empty for other names.
std::string_view leftover_name(std::string_view name) noexcept {
  if (!name.starts_with('.')) return {};
  name.remove_prefix(1);
  for (const std::string_view ending : {kPartial, kDeleted}) {
    if (!name.ends_with(ending)) continue;
    name.remove_suffix(ending.size());
    return is_bundle_name(name) ? name : std::string_view{};
  }
  return {};
}

// The largest number of a bundle created in that second, by any backend, complete or not; 0: none.
// No number is reused within the second, because retention never removes the newest bundle.
unsigned last_number(int dump_directory, std::uint64_t created_ns, Workspace& work) noexcept {
  // A new descriptor: reading must not move the position of the caller's.
  const int listing = system::open_at(dump_directory, ".", O_RDONLY | O_DIRECTORY);
  if (listing < 0) return 0;
  char buffer[24];
  const text::Text second = text::Text{buffer}.add('_').utc_name(created_ns).add('_');
  unsigned last = 0;
  system::for_each_entry(listing, work.json, kPart, [&](const char* entry) {
    const std::string_view name = is_bundle_name(entry) ? entry : leftover_name(entry);
    const auto at = name.find(second.view());
    if (at == std::string_view::npos) return;
    unsigned number = 0;
    for (const char digit : name.substr(at + second.view().size()))
      number = std::min(kMaxNumber, number * 10 + static_cast<unsigned>(digit - '0'));
    last = std::max(last, number);
  });
  system::close(listing);
  return last;
}

bool lock(int directory) noexcept {
  return system::fallible_call(SYS_flock, directory, LOCK_EX | LOCK_NB) == 0;
}

// Whether a directory can be locked, and its writer does not hold the lock.
bool is_abandoned(int dump_directory, const char* name) noexcept {
  const int directory = system::open_at(dump_directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (directory < 0) return false;
  const bool locked = lock(directory);
  system::close(directory);
  return locked;
}

}  // namespace

int open_dump_directory(const char* path, Workspace& work) noexcept {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY;
  const int directory = system::open_at(AT_FDCWD, path, kFlags);
  if (directory != -ENOENT) return directory;
  const int made = system::make_directories(path, work.temporary, sizeof work.temporary);
  return made < 0 ? made : system::open_at(AT_FDCWD, path, kFlags);
}

// oom_BACKEND_YYYYmmdd_HHMMSS_NNN
bool is_bundle_name(std::string_view name) noexcept {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const auto underscore = name.find('_');
  if (underscore == std::string_view::npos || underscore == 0) return false;
  name.remove_prefix(underscore + 1);
  constexpr std::string_view kShape = "dddddddd_dddddd_ddd";
  if (name.size() < kShape.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    const bool wants_digit = i >= kShape.size() || kShape[i] == 'd';
    if (digit != wants_digit || (!digit && name[i] != '_')) return false;
  }
  return true;
}

int claim_name(int dump_directory, std::string_view backend, std::uint64_t created_ns,
               Workspace& work) noexcept {
  for (unsigned number = last_number(dump_directory, created_ns, work) + 1; number <= kMaxNumber;
       ++number) {
    text::Text name{work.name};
    name.add(kPrefix).add(backend).add('_').utc_name(created_ns).add('_').number(number, 3);
    text::Text temporary{work.temporary};
    temporary.add('.').add(name.view()).add(kPartial);
    if (exists(dump_directory, work.name)) continue;
    const int made = system::make_directory(dump_directory, work.temporary);
    if (made == -EEXIST) continue;
    if (made < 0) return made;
    // Its owner may have published it between our check and our claim.
    if (!exists(dump_directory, work.name)) {
      const int directory =
          system::open_at(dump_directory, work.temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (directory < 0)
        system::unlink_at(dump_directory, work.temporary, AT_REMOVEDIR);
      else
        lock(directory);
      return directory;
    }
    system::unlink_at(dump_directory, work.temporary, AT_REMOVEDIR);
  }
  return -EEXIST;
}

void remove_directory(int dump_directory, const char* name, Workspace& work) noexcept {
  const int directory = system::open_at(dump_directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (directory >= 0) {
    system::for_each_entry(directory, work.json + 3 * kPart, kPart,
                           [&](const char* file) { system::unlink_at(directory, file, 0); });
    system::close(directory);
  }
  system::unlink_at(dump_directory, name, AT_REMOVEDIR);
}

void remove_leftovers(int dump_directory, std::uint64_t now_ns, Workspace& work) noexcept {
  // A new descriptor: reading must not move the position of the caller's.
  const int listing = system::open_at(dump_directory, ".", O_RDONLY | O_DIRECTORY);
  if (listing < 0) return;
  const auto now_s = static_cast<std::int64_t>(now_ns / 1'000'000'000U);
  system::for_each_entry(listing, work.json, kPart, [&](const char* name) {
    struct stat status;
    if (leftover_name(name).empty() || system::stat_at(dump_directory, name, status) != 0) return;
    const std::int64_t age_s = now_s - status.st_mtim.tv_sec;
    if (age_s > static_cast<std::int64_t>(kStaleSeconds) ||
        (age_s > static_cast<std::int64_t>(kAbandonedSeconds) &&
         is_abandoned(dump_directory, name)))
      remove_directory(dump_directory, name, work);
  });
  system::close(listing);
}

}  // namespace oomrec::bundle
