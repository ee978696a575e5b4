// Relations between recorded processes: parents, workers and ranks, and what their recordings say
// about each other's end.
//
// Reads the recordings in session and dump directories. Trusts only files of this user, and takes
// only numbers from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/session/layout.h"
#include "tools/deaths/death_observer.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

// Whether `parent` started the process of `child`.
bool is_parent(const session::Header& parent, const session::Header& child);

// Whether a signal other than SIGTERM ended another child of this parent while `child` ran, at most
// so long before its own end.
bool lost_another(const session::Header& parent, const session::Header& child,
                  std::uint64_t within_ns);

// Visits the recordings in these directories and in their bundles.
using RecordingVisitor =
    std::function<void(const std::filesystem::path& recording, const session::Header&)>;
void for_each_recording(const std::vector<std::filesystem::path>& directories,
                        const RecordingVisitor& visit);

// `observed`; if it has no wait status, with the one that a recorded parent of `child` in these
// directories got from wait().
deaths::DeathObservation with_wait_status_from_parent(
    deaths::DeathObservation observed, const session::Header& child,
    const std::vector<std::filesystem::path>& directories);

// Whether a recorded parent that runs the same program ended this worker with SIGTERM, as process
// pools do at shutdown.
bool was_terminated_by_parent(const recording::Recording& worker,
                              const std::vector<std::filesystem::path>& directories);

// What `oomrec run` with this pid calls its processes (kProcessTreeVariable).
std::string name_of_run(std::int32_t launcher, std::uint64_t realtime_ns);

// The `oomrec run` that started this process, if it has gone without having explained its end: its
// pid, of this pid namespace. 0: it is there, or something else started the process.
std::int32_t gone_launcher_of(const recording::Recording& recording);

// Whether another rank of the same launcher ran short of memory: one of its requests failed, or it
// was ended earlier by a signal other than SIGTERM. False if the process is not a rank.
bool other_rank_ran_short(const session::Header& rank,
                          const std::vector<std::filesystem::path>& directories);

}  // namespace oomrec::tools::bundles
