#include "tools/bundles/redact/bundle.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/fact_reader.h"
#include "tools/base/output_file.h"
#include "tools/base/text.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/redact/files.h"
#include "tools/bundles/redact/recording.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// The manifest is last: it lists the others, and turns the directory into a bundle.
constexpr const char* kFiles[] = {"metadata.json",  "events.json",        "environment.json",
                                  "processes.json", "gpu_processes.json", "telemetry.json",
                                  "manifest.json"};

// The metadata that readers need, for a recording without a bundle.
Json metadata_of(const Source& source) {
  Metadata metadata;
  metadata.reason = name_of(source.trigger());
  metadata.outcome = source.outcome();
  if (const std::uint32_t failure = source.failure()) {
    metadata.failure = failure;
    metadata.request = {source.repeats(), source.aftershocks()};
  }
  return fact_json(metadata);
}

class Writer {
 public:
  Writer(const Source& source, fs::path to)
      : source_(source), redactor_(*source.recording), to_(std::move(to)) {}

  void write() {
    put(kRecordingName, redacted_recording(*source_.recording, redactor_, end()));
    put_json("symbols.json", all_symbols(*source_.recording, *source_.locations, redactor_));
    put_json(kRedactedName, redacted_note());
    for (const char* name : kFiles) put_file(name);
  }

 private:
  void put_file(const std::string& name) {
    Json json = source_.bundle.empty() ? Json(nullptr) : read_any_json(source_.bundle, name);
    if (name == "metadata.json" && json.is_null()) json = metadata_of(source_);
    if (json.is_null()) return;
    if (name == "manifest.json") {
      written_.push_back(name);
      json[facts::kFilesKey] = written_;
    }
    if (name == "metadata.json") json[facts::kVerdictKey] = verdict_without_reason();
    put_json(name, redacted_file(name, std::move(json), redactor_));
  }

  // The stored summary may quote the user's text for a requested bundle, the evidence another
  // program's name.
  Json verdict_without_reason() const {
    const session::Header& header = source_.recording->header();
    session::EndEvidence known =
        end() != nullptr ? *end()
                         : session::EndEvidence{header.death, header.end_levels, header.account};
    known.account.largest_pid = 0;
    return fact_json(verdict::verdict_of(source_.recording->view(), source_.trigger(),
                                         source_.failure(), {}, source_.outcome(), &known));
  }

  const session::EndEvidence* end() const {
    return source_.ending && source_.ending->killed ? &source_.ending->evidence : nullptr;
  }

  void put_json(const std::string& name, const Json& json) { put(name, json.dump() + "\n"); }

  void put(const std::string& name, const std::string& bytes) {
    write_output(to_ / name, bytes, IfExists::fail);
    written_.push_back(name);
  }

  const Source& source_;
  const TextRedactor redactor_;
  const fs::path to_;
  std::vector<std::string> written_;
};

}  // namespace

Json redacted_note() {
  return {{"schema_version", 1},
          {"left_out",
           {"host", "user", "argv", "cwd", "environment variables", "cgroup", "source lines",
            "the user's own words: reason, metadata, labels, marks", "other programs",
            "ids of devices and of the boot"}},
          {"shortened", {"paths"}},
          {"kept",
           {"names of functions, files, libraries, threads and the program", "sizes", "times",
            "pids"}}};
}

bool is_redacted(const Source& source) {
  std::error_code ignored;
  return !source.bundle.empty() && fs::exists(source.bundle / kRedactedName, ignored);
}

void write_redacted(const Source& source, const fs::path& to) {
  if (mkdir(to.c_str(), 0700) != 0)
    throw Error{Exit::bad_input,
                fmt::format("{} cannot be made: {}", printable(to.string()), std::strerror(errno)),
                "Name a directory that does not exist yet: -o DIR"};
  try {
    Writer{source, to}.write();
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    throw;
  }
}

namespace {

constexpr std::uint64_t kMostRanks = 1U << 24;

std::uint32_t number_in(const Json& row, std::string_view key, std::uint64_t otherwise) {
  return static_cast<std::uint32_t>(std::min(number_of(row, key).value_or(otherwise), kMostRanks));
}

// Takes ranks and clock shifts from the original job: without host names they cannot be determined
// again.
JobRank redacted_rank(const Json& row, const Source& own, const fs::path& bundle) {
  write_redacted(own, bundle);
  JobRank rank;
  rank.identity.rank = number_in(row, "rank", 0);
  rank.identity.local_rank = number_in(row, "local_rank", rank.identity.rank);
  rank.source = open_recorded(bundle, own.cache);
  rank.failure = rank_failure_of(rank.source);
  const Json& shift = member(row, "shift_seconds");
  rank.shift_ns = shift.is_number() ? std::llround(shift.get<double>() * 1e9) : 0;
  rank.other_processes = number_of(row, "further_processes").value_or(0);
  return rank;
}

std::vector<std::uint32_t> missing_of(const Job& job) {
  std::set<std::uint32_t> present;
  for (const JobRank& rank : job.ranks) present.insert(rank.identity.rank);
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < job.world_size; ++rank)
    if (!present.contains(rank)) missing.push_back(rank);
  return missing;
}

}  // namespace

void write_redacted_job(const Source& source, const fs::path& to) {
  const TemporaryDirectory scratch;
  Job job;
  job.world_size = number_in(source.ranks, "world_size", 0);
  job.numbered = text_of(source.ranks, "ranks_are") == "as_named";
  if (text_of(member(source.ranks, "clock"), "aligned_by") == "mark") job.mark = "…";
  for_each_rank(source, [&](const Json& row, const Source& own) {
    const fs::path bundle = scratch.path() / std::to_string(job.ranks.size());
    job.ranks.push_back(redacted_rank(row, own, bundle));
  });
  if (job.ranks.empty())
    throw Error{Exit::bad_input, "none of its ranks' bundles can be read",
                "Were they deleted? `oomrec show` lists them."};
  job.missing = missing_of(job);
  find_first_failure(job);
  write_merged(job, to, {{kRedactedName, redacted_note()}});
}

}  // namespace oomrec::tools::bundles
