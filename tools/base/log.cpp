#include "tools/base/log.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

namespace oomrec::tools {

void write_stderr(std::string_view text) noexcept {
  sigset_t pipe, pending, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (sigismember(&pending, SIGPIPE) == 0) {
    constexpr timespec kNotAtAll{};
    while (sigtimedwait(&pipe, nullptr, &kNotAtAll) < 0 && errno == EINTR) continue;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void remark(const std::string& text) { write_stderr(fmt::format("oomrec: {}\n", text)); }

}  // namespace oomrec::tools
