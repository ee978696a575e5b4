// What a reading command reads: a bundle, a recording alone, or the session of a process.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/verdict/verdict.h"
#include "tools/base/json.h"
#include "tools/deaths/ending.h"
#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/places.h"
#include "tools/recording/symbolize/source_lines.h"

namespace oomrec::tools::bundles {

struct Source {
  std::filesystem::path bundle;  // empty: a recording without one
  std::unique_ptr<recording::Recording> recording;
  Json manifest, metadata;  // empty objects without a bundle, or where they cannot be read
  // Which of its own files cannot be read, why, and what is not known therefore.
  std::vector<std::string> unread;
  std::unique_ptr<recording::Places> places;
  std::unique_ptr<recording::SourceLines> lines;  // nullptr: opened without ReadOptions
  std::optional<deaths::Ending> ending;  // of a dead process whose recording is in no bundle
  std::shared_ptr<const recording::CacheDirectory> cache;  // as given to open_recorded()
  Json ranks;            // of a job that was made one: ranks.json of its bundle; else null
  std::string imported;  // what else it was made of: "PyTorch's memory snapshot"; empty: nothing

  bool is_live() const;                             // a running process's recording
  bool is_job() const { return !ranks.is_null(); }  // of many ranks (bundles/ranks/merged.h)

  // From the metadata, or by the recording where there is none (the trigger by the manifest first).
  Trigger trigger() const;
  std::string outcome() const;
  std::uint32_t failure() const;  // entry in `failures`; 0: nothing was refused
  std::string reason() const;     // the words given with a requested bundle
  std::uint64_t repeats() const;  // of the request: the metadata is kept up to date longest
  verdict::Verdict verdict() const;
};

// `name`: a bundle's directory, a recording, the number or the program of a running process that is
// recorded, or a memory snapshot of PyTorch. `cache`: see Places. Throws Error.
Source open_recorded(const std::string& name,
                     std::shared_ptr<const recording::CacheDirectory> cache = nullptr);

}  // namespace oomrec::tools::bundles
