// Recovers orphans, which are sessions whose process is dead: turns those worth keeping into
// bundles, and removes the others.
//
// Touches only this user's files in this user's directories. A bundle goes to the dump directory
// that the session names or, if writing there fails, beside the recording. Recovery locks the
// session file until it is deleted: two readers at once produce one bundle, and if a reader dies,
// the next one can recover the orphan. A reader without write permission shows the orphan without
// recovering it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/session/view.h"
#include "tools/bundles/recover/dead_process.h"
#include "tools/bundles/recover/sessions.h"
#include "tools/bundles/store/bundles.h"
#include "tools/deaths/death_observer.h"

namespace oomrec::tools::bundles {

enum class RecoveryAction : std::uint8_t {
  made,       // wrote a bundle
  completed,  // completed a bundle that the process had written itself
  removed,    // deleted the recording: nothing in it is worth a bundle
  unseen,     // exit status unknown: the recording stays for now (UnknownEnds::leave)
  left,       // not ours, locked by another process, or the bundle could not be written
};

struct RecoveryResult {
  RecoveryAction action = RecoveryAction::left;
  std::filesystem::path bundle;
  std::string problem;  // why it was left, or why the bundle is not in its dump directory
  // For a process that did not exit by itself, even if it got no bundle.
  std::optional<VerdictCode> verdict = {};

  bool has_bundle() const {
    return action == RecoveryAction::made || action == RecoveryAction::completed;
  }
};

struct RecoverOptions {
  // Recovers only orphans of this dump directory; empty: all, each to its own directory.
  std::filesystem::path only_into = {};
  // What the caller observed of the death, if anything.
  deaths::DeathObservation observed = {};
  UnknownEnds unknown = UnknownEnds::remove;
  // Searched for the workers' bundles, in addition to the orphan's own dump directory.
  std::vector<std::filesystem::path> dump_directories = bundles::dump_directories();
  // Called once the end is explained, before a bundle is written, which may take long.
  std::function<void(const DeadProcess&)> before_bundle = {};
};

RecoveryResult recover(const Session& orphan, const RecoverOptions& options = {});

// Recovers all orphans of the user's dump directories and calls visit(session, result) for each. An
// error becomes the result's `problem`.
void recover_all(UnknownEnds unknown,
                 const std::function<void(const Session&, const RecoveryResult&)>& visit);

// For the reading commands: recovers the orphans of these dump directories, but leaves those whose
// exit status is unknown. Reports both on stderr. Returns the recordings that are now in a bundle.
std::vector<std::filesystem::path> recover_orphans(
    const std::vector<std::filesystem::path>& dump_directories);

}  // namespace oomrec::tools::bundles
