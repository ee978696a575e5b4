// A process that died within the last ten seconds, and a log's clock to search for its end by.
#pragma once

#include "tools/deaths/kernel_kills.h"

namespace oomrec::tests {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
// 2026-11-22T01:20:00Z, an hour after the boot.
inline constexpr std::uint64_t kNow = 1'795'310'400 * kSecond;
inline constexpr tools::deaths::LogClock kClock{kNow, kNow - 3600 * kSecond};

inline tools::deaths::KillQuery log_query() {
  tools::deaths::KillQuery query;
  query.pid = 4711;
  query.same_pid_namespace = true;
  query.names = {"train_the_large_model"};
  query.from_realtime_ns = kNow - 10 * kSecond;
  query.to_realtime_ns = kNow;
  return query;
}

}  // namespace oomrec::tests
