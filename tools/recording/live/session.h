// The session of a process, sampled repeatedly: current figures, and a time line that grows with
// each sample. Symbolized stacks are cached between samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "common/session/evidence.h"
#include "common/session/view.h"
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

// A process' session, mapped to enter what only others know.
class WritableSession {
 public:
  explicit WritableSession(const std::filesystem::path& path);
  ~WritableSession();
  WritableSession(const WritableSession&) = delete;
  WritableSession& operator=(const WritableSession&) = delete;

  // False: it is no session, or may not be written.
  bool is_open() const { return memory_ != nullptr && view_.problem() == session::Problem::none; }
  const session::View& view() const { return view_; }
  session::Header& header() { return *reinterpret_cast<session::Header*>(memory_); }
  // Null: it does not reach so far.
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) {
    return view_.bytes().at(offset, bytes) != nullptr ? memory_ + offset : nullptr;
  }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  session::View view_;
};

// Why a process ends, by somebody who knows: a scheduler, a supervisor, its plugin.
struct Information {
  std::string informant;   // a name: "Ray"
  bool is_memory = false;  // the reason
  std::string text;        // in its words; may be empty
};

void enter_information(session::EndLevels&, const Information&);

// Enters it in the process' session, where a verdict on its death finds it. False: it is no
// session, or may not be written.
bool enter_information(const std::filesystem::path& session, const Information& information);

}  // namespace oomrec::tools::recording
