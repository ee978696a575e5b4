// Metrics as a file for node exporter's textfile collector, which reads DIR/*.prom: written under
// another name and renamed, so that nobody reads half of one.
#pragma once

#include <filesystem>
#include <functional>

#include "tools/service/fleet/poll_client.h"
#include "tools/service/metrics/http.h"

namespace oomrec::tools::service {

class Textfile : public Attendant {
 public:
  // Writes for the first time; throws Error with bad_input where that cannot be done.
  Textfile(const std::filesystem::path& directory, std::function<Page()> page);
  ~Textfile() override;  // writes for the last time

  void write_soon();  // something has changed: within a second, where it is not due anyway

  std::optional<Clock::time_point> wakes_at() const override { return due_; }
  void attend(std::span<const pollfd>) override;

 private:
  bool write() const;  // false: with errno

  const std::filesystem::path directory_;
  const std::function<Page()> page_;
  Clock::time_point due_, written_;
  bool failed_ = false;  // and it was said
};

}  // namespace oomrec::tools::service
