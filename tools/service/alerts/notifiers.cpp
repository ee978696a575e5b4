#include "tools/service/alerts/notifiers.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/base/error.h"
#include "tools/base/programs.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr auto kCommandTimeout = 30s;
constexpr auto kPostTimeout = 10s;
constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr int kFailed = 1;

std::string read_input() {
  std::string text;
  char piece[4096];
  for (ssize_t bytes = 0; (bytes = read(STDIN_FILENO, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(bytes));
  return text;
}

// −1 on error, with the reason on stderr.
int connected(const HttpUrl& url) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found)) {
    write_stderr(
        fmt::format("oomrec: --alert-webhook: {}: {}\n", printable(url.host), gai_strerror(error)));
    return -1;
  }
  int problem = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int socket_ = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ >= 0 && connect(socket_, at->ai_addr, at->ai_addrlen) == 0) return socket_;
    problem = errno;
    if (socket_ >= 0) close(socket_);
  }
  write_stderr(fmt::format("oomrec: --alert-webhook: {}:{}: {}\n", printable(url.host), url.port,
                           std::strerror(problem)));
  return -1;
}

bool send_all(int socket_, std::string_view text) {
  while (!text.empty()) {
    const ssize_t bytes = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (bytes <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return true;
}

// Runs in a child that alarm() ends after the timeout, so that the calls here need none.
int post(const HttpUrl& url) {
  alarm(static_cast<unsigned>(kPostTimeout.count()));
  const std::string body = read_input();
  const int socket_ = connected(url);
  if (socket_ < 0) return kFailed;
  const bool v6 = url.host.find(':') != url.host.npos;
  send_all(socket_, fmt::format("POST {} HTTP/1.1\r\nHost: {}{}{}:{}\r\nUser-Agent: oomrec/{}\r\n"
                                "Content-Type: application/json\r\nContent-Length: {}\r\n"
                                "Connection: close\r\n\r\n{}",
                                url.path, v6 ? "[" : "", url.host, v6 ? "]" : "", url.port,
                                OOMREC_VERSION, body.size(), body));
  std::string status;
  char byte = 0;
  while (status.size() < 128 && recv(socket_, &byte, 1, 0) == 1 && byte != '\r' && byte != '\n')
    status += byte;
  const bool accepted = status.starts_with("HTTP/1.") && status.size() > 9 && status[9] == '2';
  if (!accepted) {
    write_stderr(fmt::format("oomrec: --alert-webhook: {} answered: {}\n", printable(url.host),
                             status.empty() ? "nothing" : printable(status)));
  }
  return accepted ? 0 : kFailed;
}

// --disable: reads no .curlrc, which after `sudo -E` is another user's.
int run_curl(const std::string& url) {
  const std::string timeout = std::to_string(kPostTimeout.count());
  execlp("curl", "curl", "--disable", "--silent", "--show-error", "--fail", "--proto", "=https",
         "--max-time", timeout.c_str(), "--header", "Content-Type: application/json",
         "--data-binary", "@-", "--output", "/dev/null", "--", url.c_str(), nullptr);
  return 127;
}

}  // namespace

Notifier command_notifier(const std::string& command, const Environment& environment) {
  return {"--alert-exec", kCommandTimeout, [command, environment] {
            for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
            execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
            return 127;
          }};
}

HttpUrl http_url_in(const std::string& url) {
  const auto refuse = [&](const char* why) {
    return Error{Exit::bad_input,
                 fmt::format("{} is not a URL to post to: {}", printable(url), why),
                 "Give http://HOST[:PORT]/PATH or https://HOST/PATH."};
  };
  if (!url.starts_with(kHttp)) throw refuse("it does not begin with http:// or https://");
  const bool plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
  if (!plain) throw refuse("write blanks and characters other than ASCII as %XX");
  const std::size_t end = std::min(url.find_first_of("/?#", kHttp.size()), url.size());
  std::string host = url.substr(kHttp.size(), end - kHttp.size());
  if (host.find('@') != host.npos)
    throw refuse("http would send the password unencrypted; use https");
  std::string path = url.substr(end, url.find('#', end) - end);
  if (!path.starts_with('/')) path.insert(path.begin(), '/');
  std::string port = "80";
  const std::size_t colon = host.rfind(':');
  if (colon != host.npos && host.find(']', colon) == host.npos) {
    port = host.substr(colon + 1);
    host.resize(colon);
  }
  const bool is_number =
      !port.empty() && port.size() <= 5 &&
      std::ranges::all_of(port, [](unsigned char c) { return std::isdigit(c) != 0; });
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || !is_number) throw refuse("the host is missing, or the port is not a number");
  return {host, port, path};
}

Notifier webhook_notifier(const std::string& url) {
  if (url.starts_with(kHttps)) {
    if (!is_in_path("curl")) {
      throw Error{Exit::bad_input, "https URLs need curl, which is not in PATH",
                  "Install curl, or give an http URL on this machine or network."};
    }
    return {"--alert-webhook", kPostTimeout + 2s, [url] { return run_curl(url); }};
  }
  const HttpUrl parts = http_url_in(url);
  return {"--alert-webhook", kPostTimeout + 2s, [parts] { return post(parts); }};
}

namespace {

constexpr std::size_t kMostRunning = 4;
constexpr std::size_t kMostWaiting = 16;

std::string ending(int wait_status) {
  return WIFSIGNALED(wait_status) ? fmt::format("signal {}", WTERMSIG(wait_status))
                                  : fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

}  // namespace

void NotifierProcesses::add(const Notifier& notifier, std::string text) {
  if (waiting_.size() == kMostWaiting) {
    return remark(fmt::format("{}: {} earlier alerts are still being delivered; one was dropped",
                              notifier.name, waiting_.size() + running_.size()));
  }
  waiting_.emplace_back(&notifier, std::move(text));
  start_waiting();
}

void NotifierProcesses::start_waiting() {
  while (!waiting_.empty() && running_.size() < kMostRunning) {
    const auto [notifier, text] = std::move(waiting_.front());
    waiting_.pop_front();
    if (!start(*notifier, text))
      remark(fmt::format("{}: an alert was dropped: {}", notifier->name, std::strerror(errno)));
  }
}

bool NotifierProcesses::start(const Notifier& notifier, const std::string& text) {
  std::optional<ChildProcess> child = ChildProcess::start(notifier.work, text, notifier.timeout);
  if (child) running_.push_back({&notifier, std::move(*child)});
  return child.has_value();
}

void NotifierProcesses::add_descriptors(std::vector<pollfd>& polled) const {
  for (const Running& running : running_) running.child.add_descriptor(polled);
}

std::optional<NotifierProcesses::Clock::time_point> NotifierProcesses::wake_time() const {
  std::optional<Clock::time_point> at;
  for (const Running& running : running_)
    if (const auto next = running.child.wake_time()) at = std::min(at.value_or(*next), *next);
  return at;
}

bool NotifierProcesses::has_ended(Running& running) {
  const bool was_overdue = running.child.is_overdue();
  const std::optional<int> wait_status = running.child.poll();
  if (running.child.is_overdue() && !was_overdue)
    remark(fmt::format("{}: killed because it took longer than {} s", running.notifier->name,
                       running.notifier->timeout.count()));
  if (!wait_status) return false;
  if (!running.child.is_overdue() && *wait_status != 0)
    remark(fmt::format("{}: {}", running.notifier->name, ending(*wait_status)));
  return true;
}

void NotifierProcesses::on_poll(std::span<const pollfd>) {
  std::erase_if(running_, has_ended);
  start_waiting();
}

}  // namespace oomrec::tools::service
