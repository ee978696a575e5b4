#include "tools/bundles/ranks/merged.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/bundle/bundle.h"
#include "common/system/files.h"
#include "common/text/text.h"
#include "tools/base/error.h"
#include "tools/base/fact_reader.h"
#include "tools/base/output_file.h"
#include "tools/base/text.h"
#include "tools/bundles/ranks/combined.h"
#include "tools/bundles/ranks/job_json.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/bundles/store/writing.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// The symbols of all ranks' bundles, without duplicates.
Json symbols_of(const Job& job) {
  Json all = Json::array();
  std::set<std::pair<std::string, std::uint64_t>> known;
  bool full = true;
  for (const JobRank& rank : job.ranks) {
    const Json stored =
        rank.source.bundle.empty() ? Json(nullptr) : read_json(rank.source.bundle, "symbols.json");
    full = full && text_of(stored, "source") == "debug_info";
    for (const Json& symbol : member(stored, "symbols")) {
      const auto build_id = text_of(symbol, "build_id");
      const auto offset = number_of(symbol, "offset");
      if (build_id && offset && known.emplace(*build_id, *offset).second) all.push_back(symbol);
    }
  }
  return {{"schema_version", 1},
          {"source", full ? "debug_info" : "exported_names"},
          {"symbols", std::move(all)}};
}

const JobRank& lead_rank(const Job& job) { return job.ranks[job.first.value_or(0)]; }

Metadata metadata_of(const Job& job, std::uint32_t failure) {
  const Source& lead = lead_rank(job).source;
  Metadata metadata;
  metadata.reason = name_of(lead.trigger());
  metadata.outcome = lead.outcome();
  metadata.verdict = verdict_of(job);
  if (failure != 0) {
    metadata.failure = failure;
    metadata.request = {lead.repeats(), lead.aftershocks()};
  }
  if (!lead.reason().empty()) metadata.context = lead.reason();
  metadata.backend = lead.metadata.backend;
  // How the program reacted to the failure.
  metadata.exception = lead.metadata.exception;
  metadata.custom_metadata = lead.metadata.custom_metadata;
  return metadata;
}

struct MergedManifest : facts::Manifest<std::string, JsonPart> {
  bool is_merged = true;
};

MergedManifest manifest_of(const Job& job, const fs::path& to) {
  const Source& lead = lead_rank(job).source;
  MergedManifest manifest;
  manifest.bundle_name = to.filename().string();
  manifest.created_at_utc = time_text(realtime_now_ns());
  manifest.reason = name_of(lead.trigger());
  manifest.files.json = {"manifest.json", "metadata.json", "symbols.json",
                         kJobName,        kRecordingName,  kRanksName};
  manifest.verdict = name_of(verdict_of(job).code);
  manifest.program = text::base_name(lead.recording->text(lead.recording->header().executable));
  manifest.world_size = job.world_size;
  manifest.job_id = job.id;
  return manifest;
}

// Without what a job has not. That is also `oomrec_version`: retention must not delete what the
// user merged.
Json manifest_json(const Job& job, const fs::path& to) {
  Json manifest = fact_json(manifest_of(job, to));
  std::erase_if(manifest.items(), [](const Json::Member& member) {
    return member.value.is_null() || member.value == Json("") || member.value == Json(0U);
  });
  manifest["job_id"] = text_or_null(job.id);
  manifest["merged_by"] = OOMREC_VERSION;
  manifest["ranks"] = job.ranks.size();
  return manifest;
}

void put_json(const fs::path& file, const Json& json) {
  write_output(file, json.dump() + "\n", IfExists::fail);
}

void make_directory(const fs::path& directory) {
  if (mkdir(directory.c_str(), 0700) == 0) return;
  throw Error{
      Exit::bad_input,
      fmt::format("{} cannot be made: {}", printable(directory.string()), std::strerror(errno)),
      "Name a directory that does not exist yet: -o DIR"};
}

// Writes a bundle of a rank that has only a recording.
fs::path bundle_made_of(const JobRank& rank, const fs::path& directory) {
  const Source& source = rank.source;
  bundle::Cause cause;
  cause.trigger = source.trigger();
  cause.failure = source.failure();
  cause.alive = source.is_live();
  if (source.ending) {
    cause.outcome = source.ending->outcome;
    cause.outcome_value = source.ending->value;
    if (source.ending->killed) cause.end = &source.ending->evidence;
  }
  const WriteResult written = write_bundle(*source.recording, cause, directory.string());
  if (written.bundle.empty()) throw Error{Exit::bad_input, written.problem, "Is the disk full?"};
  return written.bundle;
}

void copy_rank(const JobRank& rank, const fs::path& ranks) {
  const fs::path to = ranks / std::to_string(rank.identity.rank);
  if (rank.source.bundle.empty()) {
    const fs::path scratch = ranks / ".new";
    make_directory(scratch);
    fs::rename(bundle_made_of(rank, scratch), to);
    fs::remove_all(scratch);
  } else {
    try {
      copy_bundle(rank.source.bundle, to);
    } catch (const std::system_error& error) {
      throw Error{Exit::bad_input,
                  fmt::format("the bundle {} cannot be copied: {}",
                              printable(rank.source.bundle.string()), error.code().message()),
                  "Is the disk full? To merge without it, name the other bundles one by one."};
    }
  }
}

std::string within_bundle(const JobRank& rank) {
  return fmt::format("{}/{}", kRanksName, rank.identity.rank);
}

void write_into(const Job& job, const fs::path& to, const std::map<std::string, Json>& more) {
  make_directory(to / kRanksName);
  for (const JobRank& rank : job.ranks) copy_rank(rank, to / kRanksName);
  const CombinedRecording combined = combined_recording(job);
  write_output(to / kRecordingName,
               std::string{reinterpret_cast<const char*>(combined.bytes.get()), combined.count},
               IfExists::fail);
  put_json(to / "symbols.json", symbols_of(job));
  put_json(to / "metadata.json", fact_json(metadata_of(job, combined.failure)));
  put_json(to / kJobName, job_json(job, within_bundle));
  Json manifest = manifest_json(job, to);
  for (const auto& [name, json] : more) {
    put_json(to / name, json);
    manifest[facts::kFilesKey].push_back(name);
  }
  put_json(to / "manifest.json", manifest);
}

const Json& rows_of(const Source& merged) { return member(merged.ranks, "ranks"); }

// Whether the path, without links and "..", is a directory beneath `directory`.
bool is_beneath(const fs::path& directory, const fs::path& path) {
  if (path.empty() || path.is_absolute()) return false;
  fs::path at = directory;
  for (const fs::path& part : path) {
    if (part == "..") return false;
    at /= part;
    std::error_code error;
    if (!fs::is_directory(fs::symlink_status(at, error))) return false;
  }
  return true;
}

// The bundle of a row. A merged bundle's file may be forged: it may name only its own directories.
// The paths of a job that we found ourselves are absolute. Throws Error.
fs::path bundle_in(const Json& row, const Source& merged) {
  fs::path named = text_of(row, "bundle").value_or("");
  if (merged.bundle.empty()) return named;
  if (!is_beneath(merged.bundle, named))
    throw Error{
        Exit::bad_input,
        fmt::format("{} names a bundle that is not a directory in it: {}",
                    printable((merged.bundle / kJobName).string()), printable(named.string())),
        "Merge the bundles again: oomrec merge."};
  return merged.bundle / named;
}

}  // namespace

bool is_merged(const fs::path& bundle) { return read_file<Manifest>(bundle).is_merged; }

void write_merged(const Job& job, const fs::path& to, const std::map<std::string, Json>& more) {
  make_directory(to);
  try {
    write_into(job, to, more);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    throw;
  }
}

Source merged_source(const Job& job, const fs::path& directory) {
  const CombinedRecording combined = combined_recording(job);
  Source source;
  source.recording =
      std::make_unique<recording::Recording>(directory, combined.bytes, combined.count);
  source.metadata = metadata_of(job, combined.failure);
  source.manifest.created_at_utc = time_text(realtime_now_ns());
  source.manifest.reason = source.metadata.reason;
  source.ranks = job_json(job, [](const JobRank& rank) {
    return fs::absolute(rank.source.bundle.empty() ? rank.source.recording->path()
                                                   : rank.source.bundle)
        .string();
  });
  source.cache = job.ranks.front().source.cache;
  source.locations = std::make_unique<recording::Locations>(
      *source.recording, recording::StoredSymbols::of(symbols_of(job)), source.cache);
  return source;
}

void for_each_rank(const Source& merged,
                   const std::function<void(const Json&, const Source&)>& visit) {
  for (const Json& row : rows_of(merged)) {
    Source own;
    try {
      own = open_recorded(bundle_in(row, merged), merged.cache);
    } catch (const Error&) {
      continue;  // deleted meanwhile, or damaged
    }
    visit(row, own);
  }
}

fs::path bundle_of_rank(const Source& merged, std::uint32_t rank) {
  std::vector<std::uint64_t> present;
  for (const Json& row : rows_of(merged)) {
    const auto number = number_of(row, "rank");
    if (number == rank) return bundle_in(row, merged);
    if (number) present.push_back(*number);
  }
  throw Error{Exit::bad_input, fmt::format("there is no rank {} in it", rank),
              present.empty() ? std::string{"It is a recording of one process: leave --rank out."}
                              : fmt::format("It contains rank {}.", fmt::join(present, ", "))};
}

namespace {

using system::File;

constexpr int kRead = O_RDONLY | O_NONBLOCK | O_NOCTTY;
constexpr unsigned kDeepest = 8;  // a job's ranks are two levels deep

[[noreturn]] void fail(int error) { throw std::system_error{error, std::generic_category()}; }

File opened(File file) {
  if (!file.is_open()) fail(file.error());
  return file;
}

void copy_file(int from, off_t bytes, int to_directory, const char* name) {
  const File to = opened(File::open_at(to_directory, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
  while (bytes > 0) {
    const ssize_t count = sendfile(to.descriptor(), from, nullptr, static_cast<std::size_t>(bytes));
    if (count < 0) fail(errno);
    if (count == 0) return;  // it was cut meanwhile
    bytes -= count;
  }
}

// `from`, `to`: descriptors of directories.
void copy_entries(int from, int to, unsigned depth) {
  if (depth > kDeepest) fail(ELOOP);
  File again = opened(File::open_at(from, ".", kRead | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> directory{fdopendir(again.descriptor()), closedir};
  if (directory == nullptr) fail(errno);
  again.release();  // closedir() closes it
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name{entry->d_name};
    if (name == "." || name == "..") continue;
    File found = File::open_at(from, entry->d_name, kRead | O_NOFOLLOW);
    const int error = found.error();
    // A link, a socket, a device without a driver.
    if (error == ELOOP || error == ENXIO || error == ENODEV) continue;
    const File file = opened(std::move(found));
    struct stat status {};
    if (fstat(file.descriptor(), &status) != 0) fail(errno);
    if (S_ISREG(status.st_mode)) copy_file(file.descriptor(), status.st_size, to, entry->d_name);
    if (!S_ISDIR(status.st_mode)) continue;
    if (mkdirat(to, entry->d_name, 0700) != 0) fail(errno);
    const File made = opened(File::open_at(to, entry->d_name, kRead | O_DIRECTORY | O_NOFOLLOW));
    copy_entries(file.descriptor(), made.descriptor(), depth + 1);
  }
}

}  // namespace

void copy_bundle(const std::filesystem::path& from, const std::filesystem::path& to) {
  const File source = opened(File::open(from.c_str(), kRead | O_DIRECTORY));
  if (mkdir(to.c_str(), 0700) != 0) fail(errno);
  const File made = opened(File::open(to.c_str(), kRead | O_DIRECTORY | O_NOFOLLOW));
  copy_entries(source.descriptor(), made.descriptor(), 0);
}

}  // namespace oomrec::tools::bundles
