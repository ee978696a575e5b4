// A recorded process, as sampled for metrics and alerts. Its session stays mapped, so that its last
// figures are readable even after the process has deleted the file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "common/limits/ceilings.h"
#include "tools/recording/reading/recording.h"
#include "tools/service/fleet/figures.h"

namespace oomrec::tools::service {

class MonitoredProcess {
 public:
  // Null if the file cannot be mapped any more.
  static std::unique_ptr<MonitoredProcess> of(const std::filesystem::path& recording,
                                              bool same_pid_namespace);

  // Reads the current figures; no effect after finish(). Cost: about 50 µs, mostly for three files
  // in /proc and in the cgroup.
  void sample();

  // Call when the process is gone: takes a last sample and unmaps the session.
  void finish();
  bool ended() const { return ended_; }
  bool is_replaced() const;  // by exec: the recording is over, but the process lives
  bool was_replaced() const { return replaced_; }
  bool exited() const { return exited_; }  // by itself

  const std::filesystem::path& path() const { return path_; }
  const std::string& program() const { return program_; }
  const std::string& rank() const { return rank_; }  // empty: none
  const std::string& command_line() const { return command_line_; }
  const std::string& dump_directory() const { return dump_directory_; }
  const std::string& process_key() const { return process_key_; }  // as in manifests
  int pid() const { return pid_; }
  std::uint64_t start_ns() const { return start_ns_; }                // since 1970
  std::uint64_t bundles_written() const { return bundles_written_; }  // by the process itself
  bool has_reached(session::Vendor vendor) const {
    return reached_[static_cast<std::size_t>(vendor)];
  }

  const Gauges& gauges() const { return gauges_; }
  Counts& counts() { return counts_; }
  const Counts& counts() const { return counts_; }

 private:
  MonitoredProcess(const std::filesystem::path& path,
                   std::unique_ptr<recording::Recording> recording, bool same_pid_namespace);
  void sample_memory();
  void sample_devices();
  void count_failures();

  std::filesystem::path path_;
  std::unique_ptr<recording::Recording> recording_;  // null once it has ended
  const bool same_pid_namespace_;
  std::string program_, rank_, command_line_, dump_directory_, process_key_;
  int pid_ = 0;
  std::uint64_t start_ns_ = 0;
  std::uint64_t bundles_written_ = 0;
  bool reached_[session::kVendors] = {};
  bool ended_ = false, replaced_ = false, exited_ = false;

  // Directories of its cgroup. Searched again when the limit, `cgroup_limit_bytes_`, changes.
  limit::CgroupDirectories cgroup_{};
  std::optional<std::uint64_t> cgroup_limit_bytes_;

  Gauges gauges_;
  Counts counts_;
  std::map<Api, std::uint64_t> attributed_;  // failures by function, from the session's table
  std::uint64_t seen_failures_ = 0;          // of the session's total
  std::uint64_t unattributed_failures_ = 0;  // of those, not yet in the table
  unsigned samples_waited_ = 0;
};

}  // namespace oomrec::tools::service
