// What a process holds, and what is left to it; or several of them together.
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
    std::uint64_t used = 0, total = 0;  // by all processes on it, as the driver told last
  };
  // The limit that is nearest, in proportion.
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
  using DeviceName = std::pair<std::string, std::string>;  // "cuda:0", UUID (empty: not known)

  std::map<Space, SpaceBytes> spaces;
  std::uint64_t rss_bytes = 0;
  std::map<DeviceName, DeviceBytes> devices;
  std::map<LimitKind, std::uint64_t> limits;
  std::optional<Nearest> nearest;  // nothing: no limit is known

  // With those of another process: what is held adds up; a peak is the highest of one process, a
  // limit the lowest, a device's use the largest told, and the nearest is that of who is nearest.
  void add(const Gauges& other);
};

}  // namespace oomrec::tools::service
