// "manifest.json": what a list of bundles needs. `Text`: std::string, or std::string_view in the
// dying process.
#pragma once

#include <array>
#include <optional>

#include "common/facts/describe.h"

namespace oomrec::facts {

// The members that are completed later (common/bundle/complete.cpp).
inline constexpr std::string_view kFilesKey = "files", kVerdictKey = "verdict",
                                  kCertaintyKey = "certainty";

// What was left out to keep the bundle below the size limit of its directory: words for
// bundle::Reduction.
inline constexpr auto kReductionNames = std::to_array<std::string_view>(
    {"", "without_events", "largest_stacks", "without_checkpoints"});

// The files: what has a function write(json).
template <class Text, class FileNames>
struct Manifest {
  Text bundle_name{}, created_at_utc{}, reason{}, backend{};
  std::uint64_t event_count = 0;
  FileNames files{};
  Text oomrec_version{}, verdict{}, certainty{}, program{};
  std::int32_t pid = 0;
  Text process{};
  std::uint64_t process_bundle = 0;
  Text process_started_at_utc{}, process_tree{}, follows{};
  std::optional<std::uint32_t> rank{}, local_rank{}, world_size{};
  Text job_id{}, reduced{};
};

template <class Fact>
requires requires(const Fact& of) {
  of.bundle_name;
  of.process_tree;
}
struct Section<Fact> {
  static constexpr std::string_view key = "manifest";
  static constexpr std::string_view meaning = "what a list of bundles needs";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& of) {
    constexpr std::string_view kTime = "definitions.json#/$defs/time_utc";
    v.field("schema_version", 2U,
            "2. Version 1 had no `certainty`: its verdicts claimed more than their evidence");
    v.field("bundle_name", of.bundle_name, "name of the directory");
    v.field("created_at_utc", TextOrNull{of.created_at_utc, kTime}, "when it was written");
    v.field("reason", TextOrNull{of.reason, "facts.json#/$defs/trigger"},
            "the trigger: `allocation_failed`, `soft_limit`, `request`, …");
    if constexpr (requires { of.is_merged; })
      v.field("merged", Flag{of.is_merged}, "whether it is of a job (`oomrec merge`)");
    v.field("backend", TextOrNull{of.backend, "definitions.json#/$defs/backend"},
            "`cpu`, `cuda` or `rocm`: where the requested memory lives");
    v.field("event_count", of.event_count, "entries in events.json");
    v.field(kFilesKey, of.files, "every name in the directory");
    v.field("oomrec_version", of.oomrec_version,
            "of the writer. oomrec removes only bundles with this key");
    v.field(kVerdictKey, TextOrNull{of.verdict, "facts.json#/$defs/verdict_code"},
            "`verdict.code` of metadata.json");
    v.field(kCertaintyKey, TextOrNull{of.certainty, "facts.json#/$defs/certainty"},
            "`verdict.certainty` of metadata.json");
    v.field("program", TextOrNull{of.program}, "of the recorded process");
    v.field("pid", of.pid, "its number");
    v.field("process", of.process, "boot id, pid and start time");
    v.field("process_bundle", of.process_bundle, "number of this bundle in that process");
    v.field("process_started_at_utc", TextOrNull{of.process_started_at_utc, kTime},
            "start of the recording");
    v.field("process_tree", of.process_tree,
            "the name that `oomrec run` gave the program and its descendants, else the key of the "
            "first recorded process of its [process tree](deaths.md#several-processes), as in "
            "`process`");
    v.field("follows", TextOrNull{of.follows},
            "for `child_killed`: the bundle of the worker whose death ended it; else `null`");
    v.field("rank", of.rank,
            "of a rank that a launcher (torchrun, mpirun, srun) started, from its environment at "
            "start; else `null`");
    v.field("local_rank", of.local_rank, "its number on its machine; else `null`");
    v.field("world_size", of.world_size, "the number of ranks; else `null`");
    v.field("job_id", TextOrNull{of.job_id}, "the launcher's name for the job; else `null`");
    v.field("reduced", TextOrNull{of.reduced, "facts.json#/$defs/reduction"},
            "`null`, `without_events`, `largest_stacks` or `without_checkpoints`: see below");
  }
};

}  // namespace oomrec::facts
