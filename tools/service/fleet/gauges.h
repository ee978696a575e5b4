// The gauges of one process, or of several together: memory in use, limits and headroom.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/session/vocabulary.h"

namespace oomrec::tools::service {

struct Gauges {
  struct SpaceBytes {
    std::uint64_t live = 0, peak = 0;
  };
  struct DeviceBytes {
    std::uint64_t used = 0, total = 0;  // by all processes, as the driver last reported
  };
  // The limit with the smallest headroom in proportion.
  struct Nearest {
    LimitKind kind = LimitKind::none;
    std::uint64_t limit_bytes = 0;
    std::uint64_t headroom_bytes = 0;
    double headroom_ratio() const {
      return limit_bytes == 0
                 ? 0
                 : static_cast<double>(headroom_bytes) / static_cast<double>(limit_bytes);
    }
  };
  using DeviceName = std::pair<std::string, std::string>;  // "cuda:0", UUID (empty: unknown)

  std::map<Space, SpaceBytes> spaces;
  std::uint64_t rss_bytes = 0;
  std::map<DeviceName, DeviceBytes> devices;
  std::map<LimitKind, std::uint64_t> limits;
  std::optional<Nearest> nearest;  // empty: no limit is known

  // Adds another process. Live bytes are summed. Of peaks and of device use, the highest counts; of
  // limits, the lowest; of nearest limits, the one with the smaller headroom.
  void add(const Gauges& other);
};

}  // namespace oomrec::tools::service
