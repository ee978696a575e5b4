// One recorded process as metrics and alerts see it: its session stays mapped, so that its last
// figures can be read when its own process has removed the file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "common/limits/ceilings.h"
#include "tools/recording/reading/recording.h"
#include "tools/service/fleet/counts.h"
#include "tools/service/fleet/gauges.h"

namespace oomrec::tools::service {

class Subject {
 public:
  // Nothing where the file cannot be mapped any more. `in_sight`: its pid means the same here.
  static std::unique_ptr<Subject> of(const std::filesystem::path& recording, bool in_sight);

  // Reads what there is to read now; after end() nothing changes any more. Cost: some 50 µs, most
  // of it for three files of /proc and of its cgroup.
  void look();

  // Its process is gone: a last look, and the session is let go of.
  void end();
  bool ended() const { return ended_; }
  bool is_replaced() const;  // by exec: it is over, though its process lives
  bool was_replaced() const { return replaced_; }
  bool exited() const { return exited_; }  // by itself

  const std::filesystem::path& path() const { return path_; }
  const std::string& program() const { return program_; }
  const std::string& rank() const { return rank_; }  // empty: it has none
  const std::string& command_line() const { return command_line_; }
  const std::string& dump_directory() const { return dump_directory_; }
  const std::string& process_key() const { return process_key_; }  // as manifests have it
  int pid() const { return pid_; }
  std::uint64_t start_ns() const { return start_ns_; }                // since 1970
  std::uint64_t bundles_written() const { return bundles_written_; }  // by itself
  bool has_reached(session::Vendor vendor) const {
    return reached_[static_cast<std::size_t>(vendor)];
  }

  const Gauges& gauges() const { return gauges_; }
  Counts& counts() { return counts_; }
  const Counts& counts() const { return counts_; }

 private:
  Subject(const std::filesystem::path& path, std::unique_ptr<recording::Recording> recording,
          bool in_sight);
  void look_at_memory();
  void look_at_devices();
  void count_failures();

  std::filesystem::path path_;
  std::unique_ptr<recording::Recording> recording_;  // null once it has ended
  const bool in_sight_;
  std::string program_, rank_, command_line_, dump_directory_, process_key_;
  int pid_ = 0;
  std::uint64_t start_ns_ = 0;
  std::uint64_t bundles_written_ = 0;
  bool reached_[session::kVendors] = {};
  bool ended_ = false, replaced_ = false, exited_ = false;

  // Where its cgroup is, found for this limit; looked for again when that changes.
  limit::CgroupPlace place_{};
  std::optional<std::uint64_t> placed_for_bytes_;

  Gauges gauges_;
  Counts counts_;
  std::map<Api, std::uint64_t> attributed_;  // refusals, as its table tells them by function
  std::uint64_t told_failures_ = 0;          // of its total, what has been attributed or waits
  std::uint64_t waiting_failures_ = 0;       // the total told of them, the table did not yet
  unsigned looks_waited_ = 0;
};

}  // namespace oomrec::tools::service
