// What a forked child does with the recorder, and says of itself.
#pragma once

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "recorder/recorder.h"
#include "tests/unit/recorder/running.h"

namespace oomrec::running {

using session::g_session;

enum class Way { announced, raw_clone };

// Runs `child` in a forked process. It returns nullptr, or an error message.
template <class Child>
std::string in_child(Way way, Child child) {
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  const long pid = way == Way::announced
                       ? fork()
                       : syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) {
    if (way == Way::announced) recorder::on_fork_child(kHook);
    const char* const wrong = child();
    if (g_session.active()) g_session.remove_file(kHook);
    if (wrong != nullptr && write(pipes[1], wrong, strlen(wrong)) < 0) _exit(2);
    _exit(0);
  }
  close(pipes[1]);
  char text[256] = {};
  const ssize_t bytes = read(pipes[0], text, sizeof(text) - 1);
  close(pipes[0]);
  int status = 0;
  waitpid(static_cast<int>(pid), &status, 0);
  return status != 0 ? "child died: " + std::to_string(status)
                     : std::string(text, static_cast<std::size_t>(bytes));
}

// In a child's function: what is wrong, as its result.
#define EXPECT(condition) \
  if (!(condition)) return #condition

// Live bytes of the holders of inherited memory in a space: of those whose innermost frame is
// `frame`, or of all (0).
inline std::uint64_t inherited_by(Space space, std::uint64_t frame = 0) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 1; i < g_session.holders.size(); ++i) {
    session::Holder holder;
    g_session.view().read(session::TableId::holders, i, holder);
    if (holder.api == static_cast<std::uint16_t>(Api::inherited) &&
        holder.space == static_cast<std::uint8_t>(space) &&
        (frame == 0 || g_session.node(holder.node).frame == frame))
      bytes += holder.live_bytes;
  }
  return bytes;
}

}  // namespace oomrec::running
