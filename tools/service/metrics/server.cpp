#include "tools/service/metrics/server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "tools/service/metrics/exposition.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostConnections = 32;
constexpr auto kTimeout = 10s;      // of a connection
constexpr auto kCacheTime = 250ms;  // of a page
constexpr std::size_t kMostScrapers = 16;
constexpr auto kAcceptPause = 1s;
constexpr std::size_t kPieceBytes = 16 * 1024;
constexpr std::size_t kMostIgnoredBytes = 1024 * 1024;
constexpr std::size_t kMostPieces = 8;  // from one client before the next gets its turn

std::string address_of(const sockaddr_storage& peer, socklen_t bytes) {
  char host[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&peer), bytes, host, sizeof host, nullptr, 0,
              NI_NUMERICHOST);
  return host;
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

bool MetricsServer::Connection::is_sending() const {
  if (!response) return false;
  return sent < response->head.size() + (response->body != nullptr ? response->body->size() : 0);
}

MetricsServer::MetricsServer(ListeningSockets listening, MakePage page)
    : listening_(std::move(listening)), make_page_(std::move(page)) {}

MetricsServer::~MetricsServer() {
  for (const Connection& connection : connections_) close(connection.descriptor);
  for (const int socket : listening_.sockets) close(socket);
}

void MetricsServer::add_descriptors(std::vector<pollfd>& polled) const {
  for (const int socket : listening_.sockets)
    polled.push_back({accept_resumes_ ? -1 : socket, POLLIN, 0});
  for (const Connection& connection : connections_) {
    const auto awaited = static_cast<short>(connection.is_sending() ? POLLOUT : POLLIN);
    polled.push_back({connection.descriptor, awaited, 0});
  }
}

std::optional<MetricsServer::Clock::time_point> MetricsServer::wake_time() const {
  if (connections_.empty()) return accept_resumes_;
  const auto ends = connections_.front().deadline;  // all have the same timeout
  return accept_resumes_ ? std::min(ends, *accept_resumes_) : ends;
}

void MetricsServer::on_poll(std::span<const pollfd> polled) {
  const std::size_t listeners = listening_.sockets.size();
  for (std::size_t i = 0; i < connections_.size(); ++i)
    if (polled[listeners + i].revents != 0) serve(connections_[i]);
  const auto now = Clock::now();
  if (accept_resumes_ && now >= *accept_resumes_) accept_resumes_.reset();
  for (std::size_t i = 0; i < listeners; ++i)
    if (polled[i].revents != 0) accept_all(listening_.sockets[i]);
  std::erase_if(connections_, [now](const Connection& connection) {
    const bool over = connection.done || now >= connection.deadline;
    if (over) close(connection.descriptor);
    return over;
  });
}

void MetricsServer::accept_all(int socket) {
  for (std::size_t i = 0; i < kMostConnections; ++i) {  // further ones wait for the next poll
    sockaddr_storage peer{};
    socklen_t bytes = sizeof peer;
    const int descriptor =
        accept4(socket, reinterpret_cast<sockaddr*>(&peer), &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        accept_resumes_ = Clock::now() + kAcceptPause;
      return;
    }
    if (connections_.size() == kMostConnections) {
      close(connections_.front().descriptor);
      connections_.erase(connections_.begin());
    }
    connections_.push_back({descriptor, address_of(peer, bytes), Clock::now() + kTimeout});
    serve(connections_.back());  // most have sent their request already
  }
}

void MetricsServer::serve(Connection& connection) {
  receive(connection);
  if (!connection.response && is_complete_request(connection.received)) {
    connection.response = response_to(connection.received, [&](bool by_prometheus) {
      return by_prometheus ? page_for_prometheus(connection.peer) : cached_page();
    });
    connection.received = {};
  }
  if (!connection.done) send_more(connection);
  if (connection.has_ended && !connection.is_sending()) connection.done = true;
}

// Discards what follows the request. If it stayed unread, closing would reset the connection, and
// the client would lose the response.
void MetricsServer::receive(Connection& connection) {
  char piece[kPieceBytes];
  for (std::size_t i = 0; i < kMostPieces && !connection.has_ended; ++i) {
    const ssize_t bytes = recv(connection.descriptor, piece, sizeof piece, 0);
    if (bytes < 0) {
      connection.done = !would_block();
      return;
    }
    connection.has_ended = bytes == 0;
    if (connection.response || connection.received.size() > kMostRequestBytes)
      connection.ignored += static_cast<std::size_t>(bytes);
    else
      connection.received.append(piece, static_cast<std::size_t>(bytes));
  }
  if (connection.ignored > kMostIgnoredBytes) connection.done = true;
}

void MetricsServer::send_more(Connection& connection) {
  while (connection.is_sending()) {
    const Response& response = *connection.response;
    const bool in_head = connection.sent < response.head.size();
    const std::string& part = in_head ? response.head : *response.body;
    const std::size_t from = connection.sent - (in_head ? 0 : response.head.size());
    const bool more_follows = in_head && response.body != nullptr;
    const ssize_t bytes = send(connection.descriptor, part.data() + from, part.size() - from,
                               MSG_NOSIGNAL | (more_follows ? MSG_MORE : 0));
    if (bytes < 0) {
      connection.done = !would_block();
      return;
    }
    connection.sent += static_cast<std::size_t>(bytes);
    if (!connection.is_sending()) shutdown(connection.descriptor, SHUT_WR);
  }
}

Page MetricsServer::cached_page() {
  if (cached_page_ == nullptr || Clock::now() - cached_at_ >= kCacheTime) {
    cached_page_ = make_page_({});
    cached_at_ = Clock::now();
  }
  return cached_page_;
}

// On the first scrape all series have their values: they may be old.
Page MetricsServer::page_for_prometheus(const std::string& peer) {
  const auto now = Clock::now();
  const auto scraper = scrapers_.find(peer);
  if (scraper == scrapers_.end()) {
    if (scrapers_.size() == kMostScrapers) {
      scrapers_.erase(std::ranges::min_element(
          scrapers_, [](const auto& a, const auto& b) { return a.second < b.second; }));
    }
    scrapers_.emplace(peer, now);
    return cached_page();
  }
  if (now - scraper->second < kCacheTime) return cached_page();  // not a regular scrape
  return make_page_(std::exchange(scraper->second, now));
}

namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr std::string_view kStartPage =
    "<!doctype html><html lang=\"en\"><title>oomrec</title>"
    "<p>oomrec watch: <a href=\"metrics\">metrics</a></p></html>\n";

struct RequestLine {
  std::string_view method, path;
};

bool is_token(std::string_view word) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return !word.empty() && word.find_first_not_of(kLetters) == word.npos;
}

// Parses METHOD SP TARGET SP HTTP/1.x. Empty if the line is anything else.
RequestLine parse_request_line(std::string_view received) {
  std::string_view line = received.substr(0, received.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == line.npos || last == first) return {};
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  const bool is_http1 = version == "HTTP/1.1" || version == "HTTP/1.0";
  if (!is_http1 || !is_token(method) || !target.starts_with('/') || target.find(' ') != target.npos)
    return {};
  return {method, target.substr(0, target.find('?'))};
}

// HEAD gets the head of the response to GET, with its Content-Length, but no body.
enum class Body : std::uint8_t { send, omit };

Response response(std::string_view status, std::string_view type, const Page& page, Body body,
                  std::string_view more = {}) {
  return {fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
                      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{}"
                      "Connection: close\r\n\r\n",
                      status, type, page->size(), more),
          body == Body::send ? page : nullptr};
}

Page page_of(std::string_view text) { return std::make_shared<const std::string>(text); }

Response problem(std::string_view status, std::string_view more = {}, Body body = Body::send) {
  return response(status, kPlain, page_of(fmt::format("{}\n", status)), body, more);
}

// Prometheus identifies itself by a header that only it sends.
bool is_prometheus(std::string_view received) {
  constexpr std::string_view kHeader = "\nx-prometheus-scrape-timeout-seconds:";
  std::string lower{received};
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find(kHeader) != lower.npos;
}

}  // namespace

bool is_complete_request(std::string_view received) {
  return received.find("\r\n\r\n") != received.npos || received.find("\n\n") != received.npos ||
         received.size() > kMostRequestBytes;
}

Response response_to(std::string_view received, const std::function<Page(bool)>& metrics) {
  if (received.size() > kMostRequestBytes) return problem("431 Request Header Fields Too Large");
  const RequestLine request = parse_request_line(received);
  if (request.method.empty()) return problem("400 Bad Request");
  const bool is_get = request.method == "GET";
  const Body body = is_get ? Body::send : Body::omit;
  if (!is_get && request.method != "HEAD")
    return problem("405 Method Not Allowed", "Allow: GET, HEAD\r\n");
  if (request.path == "/metrics")
    return response("200 OK", kExpositionType, metrics(is_prometheus(received)), body);
  if (request.path == "/") return response("200 OK", kHtml, page_of(kStartPage), body);
  return problem("404 Not Found", {}, body);
}

}  // namespace oomrec::tools::service
