#include "tools/recording/symbolize/debuginfod.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"

namespace oomrec::tools::recording {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr const char* kServers = "DEBUGINFOD_URLS";
constexpr const char* kTimeout = "DEBUGINFOD_TIMEOUT";  // in seconds
constexpr const char* kRetries = "DEBUGINFOD_RETRY_LIMIT";
constexpr std::chrono::milliseconds kProgressInterval{200};

using Progress = int (*)(debuginfod_client*, long done, long total);

// The functions of elfutils' debuginfod.h that libdwfl does not pass on.
struct Client {
  void (*set_progress)(debuginfod_client*, Progress) = nullptr;
  int (*find_debuginfo)(debuginfod_client*, const unsigned char* build_id, int bytes,
                        char** path) = nullptr;
};

// Null pointers if the library is not installed.
const Client& client() {
  static const Client loaded = [] {
    Client functions;
    void* const library = dlopen("libdebuginfod.so.1", RTLD_LAZY);
    const auto find = [&](auto& function, const char* name) {
      if (library != nullptr)
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    };
    find(functions.set_progress, "debuginfod_set_progressfn");
    find(functions.find_debuginfo, "debuginfod_find_debuginfo");
    return functions;
  }();
  return loaded;
}

// How long to wait for a server to begin its answer.
seconds answer_timeout() {
  static const seconds chosen = [] {
    const long number = std::atol(environment_variable(kTimeout).c_str());
    return seconds{number > 0 ? number : 10};
  }();
  return chosen;
}

}  // namespace

void require_debuginfod() {
  if (environment_variable(kServers).empty()) {
    throw Error{Exit::bad_input, fmt::format("--debuginfod: {} names no server", kServers),
                fmt::format("Set it to your distribution's server, or to one for many "
                            "distributions: export {}=https://debuginfod.elfutils.org",
                            kServers)};
  }
  if (client().set_progress == nullptr || client().find_debuginfo == nullptr) {
    throw Error{Exit::bad_input, "--debuginfod: libdebuginfod.so.1 is not installed",
                "Install libdebuginfod1 (Debian) or elfutils-debuginfod-client (Fedora)."};
  }
  // The client's own timeout aborts a stalled transfer. It must be longer than answer_timeout(),
  // after which all servers are disabled. Retries would multiply it.
  setenv(kTimeout, std::to_string(3 * answer_timeout().count()).c_str(), 1);
  setenv(kRetries, "0", 0);
}

void disable_servers() { unsetenv(kServers); }

ServerQuery::ServerQuery(std::string_view subject) : subject_(printable(subject)) {
  current_ = this;
}

ServerQuery::~ServerQuery() {
  current_ = nullptr;
  if (visible_) write_stderr("\r\x1b[K");
  // The client of elfutils 0.192 reports progress only once a server has begun to answer.
  if (!environment_variable(kServers).empty()) give_up_if_late();
}

bool ServerQuery::give_up_if_late() {
  if (is_answered_ || steady_clock::now() - start_ <= answer_timeout()) return false;
  remark(fmt::format("no server of {} answered within {} s: continuing without them", kServers,
                     answer_timeout().count()));
  disable_servers();
  return true;
}

void ServerQuery::show_progress_of(Dwfl* dwfl) {
  if (environment_variable(kServers).empty() || client().set_progress == nullptr) return;
  if (debuginfod_client* const handle = dwfl_get_debuginfod_client(dwfl))
    client().set_progress(handle, on_progress);
}

int ServerQuery::on_progress(debuginfod_client*, long done, long total) {
  return current_ == nullptr || current_->should_continue(done, total) ? 0 : 1;
}

// `total` is 0 until a server begins to answer. Only then does `done` count bytes.
bool ServerQuery::should_continue(long done, long total) {
  is_answered_ = is_answered_ || total > 0;
  if (give_up_if_late()) return false;
  const auto now = steady_clock::now();
  if (now - last_shown_ >= kProgressInterval) {
    last_shown_ = now;
    show(done, total);
  }
  return true;
}

void ServerQuery::show(long done, long total) {
  if (isatty(STDERR_FILENO) != 1) return;
  visible_ = true;
  const auto size = [](long bytes) { return size_text(static_cast<std::uint64_t>(bytes)); };
  const std::string amount =
      total > 0 ? fmt::format(": {} of {}", size(done), size(total)) : std::string{" …"};
  write_stderr(
      fmt::format("\r\x1b[Kfetching debug information of {}{}", clip_start(subject_, 40), amount));
}

std::string fetch_debug_file(Dwfl* dwfl, std::span<const std::uint8_t> build_id) {
  if (environment_variable(kServers).empty() || client().find_debuginfo == nullptr ||
      build_id.empty())
    return {};
  debuginfod_client* const handle = dwfl_get_debuginfod_client(dwfl);
  if (handle == nullptr) return {};
  char* path = nullptr;
  const int file =
      client().find_debuginfo(handle, build_id.data(), static_cast<int>(build_id.size()), &path);
  std::string found = file >= 0 && path != nullptr ? path : "";
  std::free(path);
  if (file >= 0) close(file);
  return found;
}

}  // namespace oomrec::tools::recording
