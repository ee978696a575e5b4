// The session of a process, sampled repeatedly: current figures, and a time line that grows with
// each sample. Symbolized stacks are cached between samples.
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
  Locations& locations() { return locations_; }
  Stacks& stacks() { return stacks_; }

  // Adds the current figures to the time line. False: the process has ended; figures are its last.
  bool sample();

  // The recording's moments, then one for each sample.
  const Timeline& timeline() const { return timeline_; }
  std::uint64_t elapsed_ns() const;  // since the start of the recording, at the last sample

  bool ended() const { return ended_; }
  bool replaced() const;       // by exec: another session of the same process may follow
  std::string ending() const;  // "exited with code 0"; requires ended()

 private:
  void add_moment();
  void look_at_pages();

  LiveProcess process_;
  Locations locations_;
  Stacks stacks_;
  Timeline timeline_;
  bool ended_ = false;
  std::uint64_t next_look_ns_ = 0;
};

}  // namespace oomrec::tools::recording
