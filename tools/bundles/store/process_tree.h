// Recorded processes that are parent and child, and what the one knows of the other's end.
//
// Their recordings are in the directories of sessions and of bundles. Only files of ours count, and
// only numbers are taken from them.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "common/session/layout.h"
#include "tools/deaths/watch.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

// Whether the process of `child` was begun by that of `parent`.
bool is_parent(const session::Header& parent, const session::Header& child);

// Looks at the recordings in these directories, and in the bundles there.
using Look = std::function<void(const std::filesystem::path& recording, const session::Header&)>;
void for_each_recording(const std::vector<std::filesystem::path>& directories, const Look& look);

// `watched`, and where nobody saw how `child` ended, what a recorded parent in these directories
// was told when it waited for it.
deaths::Watched with_word_of_parent(deaths::Watched watched, const session::Header& child,
                                    const std::vector<std::filesystem::path>& directories);

// Whether it is a worker that its recorded parent, of the same program, ended by SIGTERM: how a
// pool ends.
bool was_dismissed(const recording::Recording& worker,
                   const std::vector<std::filesystem::path>& directories);

// Whether it is a rank, and another one that the same launcher began was short of memory: it was
// refused some, or ended before by a signal that may come of that.
bool other_rank_was_short(const session::Header& rank,
                          const std::vector<std::filesystem::path>& directories);

}  // namespace oomrec::tools::bundles
