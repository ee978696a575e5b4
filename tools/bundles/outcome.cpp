#include "tools/bundles/outcome.h"

#include <cstring>
#include <ctime>

#include "recorder/system/files.h"
#include "tools/deaths/ending.h"

namespace oomrec::tools {
namespace {

bool is_there(const session::Header& process) {
  std::uint8_t boot[16];
  const bool this_boot =
      system::boot_id(boot) && std::memcmp(boot, process.boot_id, sizeof boot) == 0;
  return this_boot && process.start_ticks != 0 &&
         system::start_ticks(process.pid) == process.start_ticks;
}

}  // namespace

std::uint64_t realtime_now_ns() {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::string outcome_now(const std::string& stored, const session::Header& process,
                        std::uint64_t created_realtime_ns) {
  if (stored != name_of(OutcomeKind::running)) return stored;
  if (!is_there(process)) return std::string{name_of(OutcomeKind::unknown)};
  const bool lived_on =
      created_realtime_ns != 0 && created_realtime_ns + kFollowsWithinNs <= realtime_now_ns();
  return lived_on ? std::string{name_of(OutcomeKind::recovered)} : stored;
}

}  // namespace oomrec::tools
