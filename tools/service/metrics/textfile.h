// Writes metrics to a file for node exporter's textfile collector, which reads DIR/*.prom. Writes
// to a temporary name and renames it, so that nobody reads a partial file.
#pragma once

#include <filesystem>
#include <functional>

#include "tools/service/fleet/listener.h"
#include "tools/service/metrics/server.h"

namespace oomrec::tools::service {

class Textfile : public PollClient {
 public:
  // Writes the file; throws Error with bad_input if that fails.
  Textfile(const std::filesystem::path& directory, std::function<Page()> page);
  ~Textfile() override;  // writes a last time

  void write_soon();  // within a second

  std::optional<Clock::time_point> wake_time() const override { return due_; }
  void on_poll(std::span<const pollfd>) override;

 private:
  bool write() const;  // false on error, with errno

  const std::filesystem::path directory_;
  const std::function<Page()> page_;
  Clock::time_point due_, written_;
  bool failed_ = false;  // the last write failed, and that was reported
};

}  // namespace oomrec::tools::service
