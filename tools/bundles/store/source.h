// What a reading command reads: a bundle, a recording without one, a running process's session, or
// a PyTorch snapshot.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bundle/bundle.h"
#include "common/verdict/verdict.h"
#include "tools/base/foreign_file.h"
#include "tools/base/json.h"
#include "tools/bundles/store/stored_facts.h"
#include "tools/deaths/ending.h"
#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/locations.h"
#include "tools/recording/symbolize/source_lines.h"

namespace oomrec::tools::bundles {

struct Source {
  std::filesystem::path bundle;  // empty: a recording without one
  std::unique_ptr<recording::Recording> recording;
  Manifest manifest;
  Metadata metadata;
  // One sentence for each unreadable file of the bundle: its name, why, and what is missing now.
  std::vector<std::string> read_problems;
  std::unique_ptr<recording::Locations> locations;
  std::unique_ptr<recording::SourceLines> lines;           // null if opened without ReadOptions
  std::optional<deaths::Ending> ending;                    // of a dead process without a bundle
  std::shared_ptr<const recording::CacheDirectory> cache;  // the argument of open_recorded()
  pid_t pid = 0;  // of a running process, if it can be seen from here
  Json ranks;     // of a merged job: its ranks.json; else null
  std::string
      imported_from;  // the foreign format it was converted from: "memory snapshot of PyTorch"

  bool is_live() const;  // the session of a running process
  // Little is left of what the process used: it has ended without a failure, or it ends of one that
  // gets its bundle only now, after it was handled like others before.
  bool has_freed_most() const;
  bool is_job() const { return !ranks.is_null(); }  // several ranks (ranks/merged.h)

  // From the metadata; without it, derived from the recording. The trigger may be in the manifest.
  Trigger trigger() const;
  std::string outcome() const;
  std::uint32_t failure() const;           // entry in `failures`; 0: none
  std::string reason() const;              // the text given when the bundle was requested
  std::uint64_t repeats() const;           // of the request; the metadata is updated longest
  facts::Aftershocks aftershocks() const;  // of the request, likewise
  verdict::Verdict verdict() const;
};

// `name`: a bundle's directory, a recording, the pid or program of a recorded running process, or a
// PyTorch memory snapshot. `cache`: see Locations. Throws Error.
Source open_recorded(const std::string& name,
                     std::shared_ptr<const recording::CacheDirectory> cache = nullptr);

// Opens a PyTorch memory snapshot as a source of the reading commands.

// Whether the file begins like a pickle.
bool is_snapshot(const ForeignPath& file);

// The snapshot that the Python package added to a bundle, if there is one.
std::optional<ForeignPath> snapshot_in(const std::filesystem::path& bundle);

// Throws Error.
Source open_snapshot(const ForeignPath& file);

}  // namespace oomrec::tools::bundles
