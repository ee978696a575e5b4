#include "common/bundle/retention.h"

#include <sys/file.h>
#include <sys/syscall.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/bundle/directory.h"
#include "common/bundle/manifest.h"
#include "common/system/files.h"
#include "common/text/text.h"
#include "common/verdict/kinds.h"

namespace oomrec::bundle {
namespace {

constexpr std::size_t kPart = sizeof(Workspace{}.json) / 4;

// A kill with an unknown reason. It may be for memory, but a pool of workers that ends also leaves
// many of them.
bool is_doubtful(std::string_view verdict, std::string_view reason) noexcept {
  return reason == name_of(Trigger::killed) && verdict == name_of(VerdictCode::unknown);
}

}  // namespace

bool is_about_memory(std::string_view code, std::string_view reason) noexcept {
  if (reason == name_of(Trigger::simulated)) return false;
  if (is_doubtful(code, reason)) return true;
  const verdict::Kind* const kind = verdict::kind_named(code);
  return kind == nullptr || kind->kept_longer;
}

namespace {

bool is_later_of_its_process(const StoredBundle& bundle,
                             std::span<const StoredBundle> bundles) noexcept {
  const EpisodeBundle& later = bundle.episode;
  for (const StoredBundle& other : bundles) {
    const EpisodeBundle& first = other.episode;
    if (!other.is_removed && first.role == EpisodeRole::root && first.process != 0 &&
        first.process == later.process && !is_warning(first) &&
        first.process_bundle < later.process_bundle)
      return true;
  }
  return false;
}

unsigned rank_by_content(const StoredBundle& bundle,
                         std::span<const StoredBundle> bundles) noexcept {
  if (!bundle.is_about_memory) return 0;
  if (bundle.is_doubtful) return 1;
  if (bundle.episode.role != EpisodeRole::root) return 2;
  return is_warning(bundle.episode) || is_later_of_its_process(bundle, bundles) ? 3 : 4;
}

unsigned retention_rank(const StoredBundle& bundle,
                        std::span<const StoredBundle> bundles) noexcept {
  constexpr unsigned kContentRanks = 5;
  return rank_by_content(bundle, bundles) + (bundle.is_unshipped ? kContentRanks : 0);
}

// Adds up the bytes of a bundle; false if it contains a directory, as none of ours does.
bool measure(int directory, char* buffer, std::uint64_t& bytes) noexcept {
  bool ours = true;
  bytes = 0;
  system::for_each_entry(directory, buffer, kPart, [&](const char* name) {
    struct stat status;
    if (system::stat_at(directory, name, status) != 0) return;
    ours = ours && !S_ISDIR(status.st_mode);
    bytes += static_cast<std::uint64_t>(status.st_size);
  });
  return ours;
}

bool describe(int dump_directory, const char* name, uid_t owner, Workspace& work,
              StoredBundle& out) noexcept {
  const int directory = system::open_at(dump_directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (directory < 0) return false;
  char* const buffer = work.json + kPart;
  const long read = system::read_file_at(directory, "manifest.json", buffer, kPart);
  const ManifestText manifest =
      manifest_in({buffer, read > 0 ? static_cast<std::size_t>(read) : 0});
  struct stat status;
  bool ours = !manifest.oomrec_version.empty() && system::stat_at(directory, ".", status) == 0 &&
              status.st_uid == owner;
  out = {};
  if (ours) {
    out.episode = episode_bundle(name, manifest);
    out.is_about_memory = is_about_memory(manifest.verdict, manifest.reason);
    out.is_doubtful = is_doubtful(manifest.verdict, manifest.reason);
    const std::string_view text{name};
    text::Text{out.name}.add(text);
    ours = text.size() < sizeof out.name && measure(directory, work.json + 2 * kPart, out.bytes);
  }
  system::close(directory);
  return ours;
}

static_assert(alignof(EpisodeBundle) <= 8);

// The list of shipped bundles, from where its last MiB begins; < 0: there is none of the owner of
// this bundle, or it is a week older than the bundle: shipping has ended.
int open_shipped(int dump_directory, const struct stat& just_written) noexcept {
  constexpr off_t kMostBytes = 1 << 20;
  constexpr time_t kWeek = time_t{7} * 24 * 3600;
  struct stat status;
  if (system::stat_at(dump_directory, kShippedFile, status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != just_written.st_uid ||
      status.st_mtim.tv_sec + kWeek < just_written.st_mtim.tv_sec)
    return -1;
  const int list =
      system::open_at(dump_directory, kShippedFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (list >= 0 && status.st_size > kMostBytes)
    system::fallible_call(SYS_lseek, list, status.st_size - kMostBytes, SEEK_SET);
  return list;
}

// Marks the bundles that the list does not say are shipped; without a list, none.
void find_unshipped(int dump_directory, const struct stat& just_written,
                    std::span<StoredBundle> bundles, char* buffer) noexcept {
  const int list = open_shipped(dump_directory, just_written);
  if (list < 0) return;
  for (StoredBundle& bundle : bundles) bundle.is_unshipped = true;
  constexpr std::string_view kEnd = " shipped";
  char line[sizeof StoredBundle{}.name + kEnd.size()];
  std::size_t length = 0;  // longer lines say something else
  for (long bytes = 0;
       (bytes = system::fallible_call(SYS_read, list, reinterpret_cast<long>(buffer),
                                      static_cast<long>(kPart))) > 0;) {
    for (const char c : std::string_view{buffer, static_cast<std::size_t>(bytes)}) {
      if (c != '\n') {
        if (length < sizeof line) line[length] = c;
        ++length;
        continue;
      }
      const std::string_view text{line, std::min(length, sizeof line)};
      if (length <= sizeof line && text.ends_with(kEnd)) {
        for (StoredBundle& bundle : bundles)
          if (text.substr(0, text.size() - kEnd.size()) == bundle.name) bundle.is_unshipped = false;
      }
      length = 0;
    }
  }
  system::close(list);
}

// The episodes of these bundles; `buffer` is for grouping, and bounds how many it considers.
void group(std::span<StoredBundle> bundles, std::span<std::uint64_t> buffer) noexcept {
  auto* const grouped = reinterpret_cast<EpisodeBundle*>(buffer.data());
  const std::size_t count = std::min(bundles.size(), buffer.size_bytes() / sizeof(EpisodeBundle));
  for (std::size_t i = 0; i < count; ++i) grouped[i] = bundles[i].episode;
  group_episodes({grouped, count});
  for (std::size_t i = 0; i < count; ++i) bundles[i].episode = grouped[i];
}

// Whoever may open a directory may lock it, for ever. Without a lock two processes at most remove
// the same bundles.
bool is_done_by_another(int listing) noexcept {
  struct stat status;
  if (system::stat_at(listing, ".", status) != 0 || (status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    return false;
  // Some network file systems cannot lock directories: go on without the lock.
  return system::fallible_call(SYS_flock, listing, LOCK_EX | LOCK_NB) == -EWOULDBLOCK;
}

// Renames first: a half-removed bundle then has a hidden name, under which remove_leftovers() finds
// it.
void remove_bundle(int dump_directory, const char* name, Workspace& work) noexcept {
  char hidden[64];
  text::Text{hidden}.add('.').add(name).add(".deleted");
  if (system::rename_at(dump_directory, name, hidden) == 0)
    remove_directory(dump_directory, hidden, work);
}

// Of a process' bundles within a second, those that commands have written are all its first.
bool is_newer(const EpisodeBundle& one, const EpisodeBundle& other) noexcept {
  if (is_earlier(other, one)) return true;
  return !is_earlier(one, other) && one.number > other.number;
}

}  // namespace

void select_removals(std::span<StoredBundle> bundles, const Bounds& bounds) noexcept {
  std::uint64_t count = 0;
  std::uint64_t spooled = 0;
  std::uint64_t bytes = 0;
  const StoredBundle* newest = nullptr;
  for (const StoredBundle& bundle : bundles) {
    if (bundle.is_removed) continue;
    ++(bundle.is_unshipped ? spooled : count);
    bytes += bundle.bytes;
    if (newest == nullptr || is_newer(bundle.episode, newest->episode)) newest = &bundle;
  }
  for (;;) {
    const bool is_spool_full =
        spooled > kMostSpooled || (bounds.bytes != 0 && bytes > bounds.bytes);
    if (!is_spool_full && (bounds.bundles == 0 || count <= bounds.bundles)) return;
    StoredBundle* victim = nullptr;
    unsigned victim_rank = 0;
    for (StoredBundle& bundle : bundles) {
      if (bundle.is_removed || bundle.just_written || &bundle == newest ||
          (bundle.is_unshipped && !is_spool_full))
        continue;
      const unsigned rank = retention_rank(bundle, bundles);
      if (victim != nullptr &&
          (rank > victim_rank ||
           (rank == victim_rank && !is_earlier(bundle.episode, victim->episode))))
        continue;
      victim = &bundle;
      victim_rank = rank;
    }
    if (victim == nullptr) return;
    victim->is_removed = true;
    --(victim->is_unshipped ? spooled : count);
    bytes -= victim->bytes;
  }
}

void enforce_bounds(int dump_directory, const char* written, const Bounds& bounds,
                    Workspace& work) noexcept {
  if (bounds.bundles == 0 && bounds.bytes == 0) return;
  const int listing = system::open_at(dump_directory, ".", O_RDONLY | O_DIRECTORY);
  if (listing < 0) return;
  struct stat just_written;
  if (!is_done_by_another(listing) && system::stat_at(dump_directory, written, just_written) == 0) {
    static_assert(alignof(StoredBundle) <= 8);
    const std::span<StoredBundle> all{reinterpret_cast<StoredBundle*>(work.text),
                                      std::size(work.text) / sizeof(StoredBundle)};
    static_assert(std::size(Workspace{}.text) / sizeof(StoredBundle) > kMostSpooled + 100);
    std::size_t found = 0;
    system::for_each_entry(listing, work.json, kPart, [&](const char* name) {
      if (found == all.size() || !is_bundle_name(name)) return;
      if (!describe(dump_directory, name, just_written.st_uid, work, all[found])) return;
      all[found].just_written = std::strcmp(name, written) == 0;
      ++found;
    });
    find_unshipped(dump_directory, just_written, all.first(found), work.json);
    group(all.first(found), {work.sort, std::size(work.sort)});
    select_removals(all.first(found), bounds);
    for (const StoredBundle& bundle : all.first(found))
      if (bundle.is_removed) remove_bundle(dump_directory, bundle.name, work);
  }
  system::close(listing);
}

}  // namespace oomrec::bundle
