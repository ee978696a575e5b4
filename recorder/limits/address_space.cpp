#include "recorder/limits/address_space.h"

#include <sys/resource.h>

#include <algorithm>

#include "common/system/syscalls.h"
#include "common/system/units.h"
#include "recorder/session/writer.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

namespace {

struct Limit {
  std::uint64_t bytes;      // as set; 0: not set
  std::uint64_t own_bytes;  // of those the recorder's
};
constinit Limit g_limit{};

}  // namespace

void describe_address_space_limit() noexcept {
  session::Header& header = session::g_session.header();
  header.limit_as_bytes = g_limit.bytes;
  header.limit_as_own_bytes = g_limit.own_bytes;
}

bool limit_address_space(InHook hook) noexcept {
  const Options& options = g_state.options;
  if (options.limit_as == 0) return true;
  const bool want_exact = options.mode == Mode::exact;
  const std::uint64_t ours =
      want_exact ? g_state.budget_bytes + 64 * kMiB : std::max(2 * g_state.budget_bytes, 32 * kMiB);
  // The part of it that most recordings need is taken now: the program cannot.
  session::g_session.arena.map_ahead(hook, session::kSegmentBytes);
  rlimit64 limits{};
  if (system::call(SYS_prlimit64, 0, RLIMIT_AS, nullptr, &limits) != 0) return true;
  limits.rlim_cur = std::min(limits.rlim_max, std::max(options.limit_as + ours, ours));
  if (system::call(SYS_prlimit64, 0, RLIMIT_AS, &limits, nullptr) != 0) return false;
  if (limits.rlim_cur != options.limit_as + ours) return true;  // the hard limit is lower
  g_limit.bytes = limits.rlim_cur;
  g_limit.own_bytes = ours;
  describe_address_space_limit();
  return true;
}

}  // namespace oomrec::recorder
