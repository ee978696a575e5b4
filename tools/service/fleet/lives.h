// Writes a row of some of the processes that end well, as seen from outside: without the needs of
// those that lived, nobody can say what a service needs (docs/fleet.md).
//
// Which ones depends on their id alone, so that every observer chooses the same. A session stays
// mapped, so that it can be read after its process has deleted the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/bundles/recover/sessions.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::service {

class Lives {
 public:
  explicit Lives(double share) : share_(share) {}

  // With the share in OOMREC_LIFE_ROWS; nothing if it is 0 or not set. Throws Error for another
  // value.
  static std::optional<Lives> from_environment();

  // A process that is alive. `tree`: what header.process_tree must be; empty: anything.
  void add(const bundles::Session& session, const std::string& tree = {});

  // Reads how much was resident at most. About 30 µs; of a process that is not chosen, nothing.
  void sample(const std::filesystem::path& recording);

  // The process has ended: writes its row if it ended well, ran for a second and had 16 MiB.
  // `wait_status`: nothing if its session says that it exited, or nobody knows.
  void on_end(const std::filesystem::path& recording, std::optional<int> wait_status = {});

  // For a launcher, at each of its samples: adds the processes of `tree`, and ends those that are
  // gone, but for `program`, which it waits for.
  void update(const std::vector<bundles::Session>& sessions, const std::string& tree,
              pid_t program);
  void on_end_of(pid_t program, int wait_status);

 private:
  struct Process {
    std::unique_ptr<recording::Recording> recording;
    std::uint64_t resident_peak_bytes = 0;
  };
  void write(std::unique_ptr<recording::Recording> recording, std::uint64_t resident_peak_bytes);

  double share_;
  std::map<std::filesystem::path, Process> processes_;
};

// Whether a share of all processes includes the one with this id, of 16 hexadecimal digits.
bool is_chosen(const std::string& id, double share);

}  // namespace oomrec::tools::service
