// Command lines without their passwords (common/session/secrets.h), for everything that is written
// or shown.
#pragma once

#include <string>
#include <vector>

namespace oomrec::tools {

// `arguments`: with a NUL after each, as in /proc/PID/cmdline.
std::string mask_secrets(std::string arguments);
std::vector<std::string> masked_words(const std::vector<std::string>& words);

}  // namespace oomrec::tools
