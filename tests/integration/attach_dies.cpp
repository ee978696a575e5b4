// `oomrec attach`, killed at a step: attach_dies STEP PID LIBRARY VARIABLE=VALUE…
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tools/base/error.h"
#include "tools/processes/attach/remote_call.h"
#include "tools/processes/attach/session.h"

namespace {

std::string g_fatal_step;

}  // namespace

// Instead of the command's.
void oomrec::tools::processes::reach_step(std::string_view step) {
  if (step == g_fatal_step) std::raise(SIGKILL);
}

int main(int count, char** words) {
  if (count < 4) return 1;
  g_fatal_step = words[1];
  std::vector<std::pair<std::string, std::string>> settings;
  for (int i = 4; i < count; ++i) {
    const std::string setting = words[i];
    const std::size_t equals = setting.find('=');
    settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  try {
    oomrec::tools::processes::attach_to(std::atoi(words[2]), words[3], settings);
  } catch (const oomrec::tools::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
