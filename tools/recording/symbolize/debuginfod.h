// Queries to the servers of DEBUGINFOD_URLS, through elfutils' client. The client is loaded on
// first use and never linked, because it depends on curl.
//
// If no server begins to answer within 10 s (DEBUGINFOD_TIMEOUT), all are disabled for the rest of
// the command: a recording has dozens of modules. (The client of elfutils 0.192 cannot be stopped
// before three times that.) The client caches what it has fetched.
#pragma once

#include <elfutils/libdwfl.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace oomrec::tools::recording {

// Throws Error if DEBUGINFOD_URLS names no server, or the client is not installed.
void require_debuginfod();

// From now on no server is queried, not even by libdwfl.
void disable_servers();

// The current query, for debug information of `subject`. If stderr is a terminal, it shows the
// progress there, and the destructor clears it.
class ServerQuery {
 public:
  explicit ServerQuery(std::string_view subject);
  ~ServerQuery();
  ServerQuery(const ServerQuery&) = delete;
  ServerQuery& operator=(const ServerQuery&) = delete;

  // Shows the progress of this session's client, if it has one.
  static void show_progress_of(Dwfl* dwfl);

 private:
  static int on_progress(debuginfod_client* client, long done, long total);
  bool should_continue(long done, long total);
  void show(long done, long total);
  bool give_up_if_late();

  static inline ServerQuery* current_ = nullptr;
  std::string subject_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_shown_ = start_;
  bool is_answered_ = false;
  bool visible_ = false;
};

// Fetches the debug file with this build-id into the client's cache, and returns its path there.
// Empty: no server has it.
std::string fetch_debug_file(Dwfl* dwfl, std::span<const std::uint8_t> build_id);

}  // namespace oomrec::tools::recording
