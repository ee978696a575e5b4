// Why a process ends, by somebody who knows: a scheduler, a supervisor, its plugin.
#pragma once

#include <filesystem>
#include <string>

#include "common/session/evidence.h"

namespace oomrec::tools::recording {

struct Information {
  std::string informant;   // a name: "Ray"
  bool is_memory = false;  // the reason
  std::string text;        // in its words; may be empty
};

void enter_information(session::EndLevels&, const Information&);

// Enters it in the process' session, where a verdict on its death finds it. False: it is no
// session, or may not be written.
bool enter_information(const std::filesystem::path& session, const Information& information);

}  // namespace oomrec::tools::recording
