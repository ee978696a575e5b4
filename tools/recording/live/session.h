// The session of a process, looked at again and again: figures of now, names kept from one look to
// the next, and what was seen of the memory over time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/recording/analysis/stacks.h"
#include "tools/recording/live/processes.h"
#include "tools/recording/reading/timeline.h"
#include "tools/recording/symbolize/cache_directory.h"

namespace oomrec::tools::recording {

class LiveSession {
 public:
  LiveSession(LiveProcess process, std::shared_ptr<const CacheDirectory> cache);

  const LiveProcess& process() const { return process_; }
  const Recording& recording() const { return *process_.recording; }
  Places& places() { return places_; }
  Stacks& stacks() { return stacks_; }

  // Looks once more. False: the process has ended, and figures are the last ones.
  bool look();

  // The recording's own, and every look since: the last one is of now.
  const Timeline& timeline() const { return timeline_; }
  std::uint64_t elapsed_ns() const;  // since the recording began, at the last look

  bool ended() const { return ended_; }
  bool replaced() const;       // by exec: another session of the same process may follow
  std::string ending() const;  // "exited with code 0"; of a process that has ended

 private:
  void add_moment();

  LiveProcess process_;
  Places places_;
  Stacks stacks_;
  Timeline timeline_;
  bool ended_ = false;
};

}  // namespace oomrec::tools::recording
