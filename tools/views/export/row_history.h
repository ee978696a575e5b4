// A row's columns about time: when, how long, how much memory, in which shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::views {

// How memory grew until the end.
enum class Growth : std::uint8_t {
  unknown,
  steady,  // it rose all the time, as a leak does
  bounded  // it stayed for long, or fell again
};

class RowHistory {
 public:
  // `is_of_device`: the growth that counts is that of the memory of GPUs.
  RowHistory(const recording::Recording& recording, bool is_of_device);

  std::uint64_t end_realtime_ns() const { return end_realtime_ns_; }  // 0: unknown
  double run_seconds() const;                                         // 0: unknown
  std::uint64_t most_resident_bytes() const;                          // 0: unknown
  double lost_gib_hours() const;                                      // resident memory × time
  // Of the second half, by the least squares; nothing for fewer than three readings.
  std::optional<double> bytes_per_second() const;
  Growth growth() const;

  // The three columns of the time line, of at most `most` moments. The last one is the end.
  void write_timeline(Json& row, std::size_t most) const;

 private:
  struct Moment {
    std::uint64_t ms = 0;  // since the start
    std::uint64_t resident_bytes = 0, live_bytes = 0, device_bytes = 0;

    // What is known of the host's memory.
    double bytes() const {
      return static_cast<double>(resident_bytes != 0 ? resident_bytes : live_bytes);
    }
  };
  double shape_bytes(const Moment& moment) const {
    return is_of_device_ ? static_cast<double>(moment.device_bytes) : moment.bytes();
  }
  std::vector<Moment> second_half() const;

  const bool is_of_device_;
  std::vector<Moment> moments_;
  std::uint64_t end_realtime_ns_ = 0, start_realtime_ns_ = 0;
};

// Rows that earlier releases wrote, with today's signatures.

// The row with the signature that today's rules give its holders; the one that it had is its
// `signature_alias`. A line that is no row of an earlier version stays as it is.
std::string renewed_row(std::string_view line);

}  // namespace oomrec::tools::views
