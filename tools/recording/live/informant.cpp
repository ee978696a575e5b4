#include "tools/recording/live/informant.h"

#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/recording/live/writable_session.h"

namespace oomrec::tools::recording {

void enter_information(session::EndLevels& levels, const Information& information) {
  system::Text line{levels.user_killer_line};
  line << information.informant;
  if (!information.text.empty()) line << ": " << information.text;
  levels.user_killer = static_cast<std::uint32_t>(
      information.is_memory ? session::UserKiller::informant : session::UserKiller::other_reason);
}

bool enter_information(const std::filesystem::path& session, const Information& information) {
  WritableSession open{session};
  if (!open.is_open()) return false;
  enter_information(open.header().end_levels, information);
  open.header().told_realtime_ns.store(system::realtime_ns(), std::memory_order_release);
  return true;
}

}  // namespace oomrec::tools::recording
