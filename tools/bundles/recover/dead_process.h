// How and why a dead process ended, from its session, the recordings of related processes and the
// kernel. Recovery decides by this what to do with the session.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/session/notable.h"
#include "tools/bundles/store/trigger.h"
#include "tools/deaths/ending.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

using session::kNotableBytes;

// Whether it ended by Ctrl-C, or because the reader of its pipe has gone: as healthy programs end.
bool ended_as_usual(const deaths::Ending& ending);

// The dump directory that the program asked for; empty if its session has none.
std::string dump_directory_of(const recording::Recording& recording);

struct DeadProcess {
  // Reads the session and those of related processes; for a killed process, the kernel's log, too.
  DeadProcess(const recording::Recording& recording, const deaths::DeathObservation& observed);

  bool crash_is_due() const { return bundles::crash_is_due(recording.view()); }
  bool has_failure_in_bundle() const { return failed && failed->in_bundle; }

  const recording::Recording& recording;
  const std::filesystem::path session_directory;
  const std::string dump_directory;
  const std::optional<FailedRequest> failed;  // the latest
  bool terminated_by_parent = false;          // as pools do at shutdown
  bool ended_by_launcher = false;  // its launcher ended it after another rank ran out of memory
  deaths::Ending ending;
  bool ended_by_failure = false;  // `ending` is a consequence of `failed`
  bool survived_failure = false;  // something else than `failed` ended it
};

// What to do with a large process about whose end nothing is known, and that lacked no memory as
// far as the kernel says: a program that exits past our hooks (Go, a raw exit_group) leaves no
// more.
enum class UnknownEnds : std::uint8_t {
  remove,
  keep,   // as a bundle
  leave,  // its recording stays for a day, so that one may still ask for a bundle
};

// Whether it is such a process.
bool ended_unseen(const DeadProcess& process);

// Whether the death alone is worth a bundle: an OOM death, one of a process that held 16 MiB or
// more, unless healthy programs end like that, a crash soon after a failure that does not explain
// it, or one in a job where another rank ran out of memory.
bool is_notable_death(const DeadProcess& process, UnknownEnds unknown);

}  // namespace oomrec::tools::bundles
