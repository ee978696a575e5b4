// Orphans: sessions whose process is dead. Those worth keeping become bundles, the others go.
//
// Only files of our own in directories of our own are touched, and a bundle goes only where its own
// session's owner, ourselves, wanted it. Who takes an orphan holds a lock on its file until it is
// gone, so that two readers make one bundle, and a reader that dies leaves the orphan to the next.
// Where its dump directory takes no bundle, the bundle goes beside the recording, as a refusal's.
// Who may not write shows it as it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/session/view.h"
#include "tools/deaths/watch.h"

namespace oomrec::tools::bundles {

struct Session {
  std::filesystem::path path;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;
  std::uint64_t start_ticks = 0;         // of the process
  std::uint64_t start_monotonic_ns = 0;  // of the recording
  bool alive = false;
  bool writable = false;    // may be removed
  bool unfinished = false;  // its process was killed before there was anything to read
};

// Sessions of this user, in the directories that the recorder would choose with these dump
// directories (docs/how-it-works.md). The youngest process first: what became of its workers is
// known before a parent is judged.
std::vector<Session> sessions_of(const std::vector<std::filesystem::path>& dump_directories);

// Where those are looked for.
std::vector<std::filesystem::path> session_directories(
    const std::vector<std::filesystem::path>& dump_directories);

enum class Recovery : std::uint8_t {
  made,       // a bundle
  completed,  // a bundle that its process had written itself
  removed,    // nothing in it that anybody would want
  left,       // ours it is not, somebody else is at it, or no bundle could be written
};
struct Recovered {
  Recovery what = Recovery::left;
  std::filesystem::path bundle;
  std::string problem;  // why it was left or is not where it was wanted; may be empty
  // Of a process that did not end by itself, whether or not it was worth a bundle.
  std::optional<VerdictCode> verdict = {};
};

// Makes what is due of an orphan. `only_into`: leaves orphans of other dump directories alone;
// empty: each goes to its own. `watched`: what was seen of its death, if anybody saw it.
Recovered recover(const Session& orphan, const std::filesystem::path& only_into,
                  const deaths::Watched& watched = {});

// For the reading commands: recovers the orphans of these dump directories, and says so. The
// recordings that a bundle tells now.
std::vector<std::filesystem::path> recover_orphans(
    const std::vector<std::filesystem::path>& dump_directories);

}  // namespace oomrec::tools::bundles
