// What a reading command reads: a bundle, a recording alone, or the session of a process.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/verdict/verdict.h"
#include "tools/analysis/recording.h"
#include "tools/deaths/ending.h"
#include "tools/json.h"
#include "tools/symbolize/places.h"
#include "tools/symbolize/source_lines.h"

namespace oomrec::tools {

struct Source {
  std::filesystem::path bundle;  // empty: a recording without one
  std::unique_ptr<Recording> recording;
  Json manifest, metadata;  // empty objects without a bundle, or where they cannot be read
  // Which of its own files cannot be read, why, and what is not known therefore.
  std::vector<std::string> unread;
  std::unique_ptr<Places> places;
  std::unique_ptr<SourceLines> lines;  // nullptr: open_source() alone reads no program's files
  std::optional<Ending> ending;        // of a dead process whose recording is in no bundle
  std::shared_ptr<const CacheDirectory> cache;  // as given to open_source()
  Json ranks;            // of a job that was made one: ranks.json of its bundle; else null
  std::string imported;  // what else it was made of: "PyTorch's memory snapshot"; empty: nothing

  bool is_live() const;                             // a running process's recording
  bool is_job() const { return !ranks.is_null(); }  // of many ranks (tools/ranks/merged.h)

  // From the metadata, or by the recording where there is none (the trigger by the manifest first).
  Trigger trigger() const;
  std::string outcome() const;
  std::uint32_t failure() const;  // entry in `failures`; 0: nothing was refused
  std::string reason() const;     // the words given with a requested bundle
  std::uint64_t repeats() const;  // of the request: the metadata is kept up to date longest
  bundle::Verdict verdict() const;
};

// `argument`: a bundle's directory, a recording, the number of a running process that is recorded,
// a memory snapshot of PyTorch, a directory with bundles of a job's ranks, or empty: the newest
// bundle of the dump directory, after recordings of dead processes there were made bundles.
// `cache`: see Places. Throws Error.
Source open_source(const std::string& argument,
                   std::shared_ptr<const CacheDirectory> cache = nullptr);

}  // namespace oomrec::tools
