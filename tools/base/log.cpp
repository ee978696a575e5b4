#include "tools/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace oomrec::tools {

void remark(const std::string& text) {
  static const auto logger = [] {
    auto made = std::make_shared<spdlog::logger>("oomrec",
                                                 std::make_shared<spdlog::sinks::stderr_sink_st>());
    made->set_pattern("%n: %v");
    return made;
  }();
  logger->info("{}", text);
}

}  // namespace oomrec::tools
