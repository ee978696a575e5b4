// Questions to the servers of DEBUGINFOD_URLS, through elfutils' client, which libdwfl loads when
// it is first needed (it brings curl): nothing of it is linked.
//
// One that does not begin to answer within 10 s (DEBUGINFOD_TIMEOUT) is not waited for, and from
// then on none is asked: a recording has dozens of modules. What was fetched stays in the client's
// own cache.
#pragma once

#include <elfutils/libdwfl.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace oomrec::tools::recording {

// Throws Error when DEBUGINFOD_URLS names no server, or the client is not installed.
void need_debuginfod();

// From now on no server is asked, by libdwfl neither.
void forget_servers();

// While one lives, the question that is under way is about `subject`: its progress is told on
// stderr if that is a terminal, and is gone from there when it ends.
class ServerQuestion {
 public:
  explicit ServerQuestion(std::string_view subject);
  ~ServerQuestion();
  ServerQuestion(const ServerQuestion&) = delete;
  ServerQuestion& operator=(const ServerQuestion&) = delete;

  // Makes the client of this session tell its progress. Nothing happens where there is none.
  static void watch(Dwfl* dwfl);

 private:
  static int progress(debuginfod_client* client, long done, long total);
  bool goes_on(long done, long total);
  void tell(long done, long total);

  static inline ServerQuestion* current_ = nullptr;
  std::string subject_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_ = begun_;
  bool visible_ = false;
};

// The debug information with this build-id, as a file of the client's cache; empty: no server has
// it.
std::string ask_servers(Dwfl* dwfl, std::span<const std::uint8_t> build_id);

}  // namespace oomrec::tools::recording
