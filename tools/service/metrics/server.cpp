#include "tools/service/metrics/server.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostConnections = 32;
constexpr auto kLongest = 10s;  // of a connection
constexpr auto kFresh = 250ms;  // a page is served again for so long
constexpr std::size_t kMostScrapers = 16;
constexpr auto kUntilDescriptors = 1s;
constexpr std::size_t kPieceBytes = 16 * 1024;
constexpr std::size_t kMostIgnored = 1024 * 1024;
constexpr std::size_t kMostPieces = 8;  // at a time, of one client: then it is another's turn

std::string address_of(const sockaddr_storage& peer, socklen_t bytes) {
  char host[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&peer), bytes, host, sizeof host, nullptr, 0,
              NI_NUMERICHOST);
  return host;
}

bool is_to_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

bool MetricsServer::Connection::is_sending() const {
  if (!answer) return false;
  return sent < answer->head.size() + (answer->body != nullptr ? answer->body->size() : 0);
}

MetricsServer::MetricsServer(Listening listening, MakePage page)
    : listening_(std::move(listening)), page_(std::move(page)) {}

MetricsServer::~MetricsServer() {
  for (const Connection& connection : connections_) close(connection.descriptor);
  for (const int socket : listening_.sockets) close(socket);
}

void MetricsServer::add_polled(std::vector<pollfd>& polled) const {
  for (const int socket : listening_.sockets)
    polled.push_back({listens_again_ ? -1 : socket, POLLIN, 0});
  for (const Connection& connection : connections_) {
    const auto awaited = static_cast<short>(connection.is_sending() ? POLLOUT : POLLIN);
    polled.push_back({connection.descriptor, awaited, 0});
  }
}

std::optional<MetricsServer::Clock::time_point> MetricsServer::wakes_at() const {
  if (connections_.empty()) return listens_again_;
  const auto ends = connections_.front().ends;  // all have the same time
  return listens_again_ ? std::min(ends, *listens_again_) : ends;
}

void MetricsServer::attend(std::span<const pollfd> polled) {
  const std::size_t listeners = listening_.sockets.size();
  for (std::size_t i = 0; i < connections_.size(); ++i)
    if (polled[listeners + i].revents != 0) attend_to(connections_[i]);
  const auto now = Clock::now();
  if (listens_again_ && now >= *listens_again_) listens_again_.reset();
  for (std::size_t i = 0; i < listeners; ++i)
    if (polled[i].revents != 0) accept_all(listening_.sockets[i]);
  std::erase_if(connections_, [now](const Connection& connection) {
    const bool over = connection.done || now >= connection.ends;
    if (over) close(connection.descriptor);
    return over;
  });
}

void MetricsServer::accept_all(int socket) {
  for (std::size_t i = 0; i < kMostConnections; ++i) {  // more wait for the next turn
    sockaddr_storage peer{};
    socklen_t bytes = sizeof peer;
    const int descriptor =
        accept4(socket, reinterpret_cast<sockaddr*>(&peer), &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        listens_again_ = Clock::now() + kUntilDescriptors;
      return;
    }
    if (connections_.size() == kMostConnections) {
      close(connections_.front().descriptor);
      connections_.erase(connections_.begin());
    }
    connections_.push_back({descriptor, address_of(peer, bytes), Clock::now() + kLongest});
    attend_to(connections_.back());  // most have sent their request already
  }
}

void MetricsServer::attend_to(Connection& connection) {
  receive(connection);
  if (!connection.answer && is_whole_request(connection.received)) {
    connection.answer = answer_to(connection.received, [&](bool by_prometheus) {
      return by_prometheus ? page_for_prometheus(connection.peer) : fresh_page();
    });
    connection.received = {};
  }
  if (!connection.done) send_more(connection);
  if (connection.has_ended && !connection.is_sending()) connection.done = true;
}

// What comes after the request is read and thrown away: were it left unread, closing would take the
// answer from the client.
void MetricsServer::receive(Connection& connection) {
  char piece[kPieceBytes];
  for (std::size_t i = 0; i < kMostPieces && !connection.has_ended; ++i) {
    const ssize_t bytes = recv(connection.descriptor, piece, sizeof piece, 0);
    if (bytes < 0) {
      connection.done = !is_to_wait();
      return;
    }
    connection.has_ended = bytes == 0;
    if (connection.answer || connection.received.size() > kMostRequestBytes)
      connection.ignored += static_cast<std::size_t>(bytes);
    else
      connection.received.append(piece, static_cast<std::size_t>(bytes));
  }
  if (connection.ignored > kMostIgnored) connection.done = true;
}

void MetricsServer::send_more(Connection& connection) {
  while (connection.is_sending()) {
    const Answer& answer = *connection.answer;
    const bool in_head = connection.sent < answer.head.size();
    const std::string& part = in_head ? answer.head : *answer.body;
    const std::size_t from = connection.sent - (in_head ? 0 : answer.head.size());
    const bool more_follows = in_head && answer.body != nullptr;
    const ssize_t bytes = send(connection.descriptor, part.data() + from, part.size() - from,
                               MSG_NOSIGNAL | (more_follows ? MSG_MORE : 0));
    if (bytes < 0) {
      connection.done = !is_to_wait();
      return;
    }
    connection.sent += static_cast<std::size_t>(bytes);
    if (!connection.is_sending()) shutdown(connection.descriptor, SHUT_WR);
  }
}

Page MetricsServer::fresh_page() {
  if (made_ == nullptr || Clock::now() - made_at_ >= kFresh) {
    made_ = page_({});
    made_at_ = Clock::now();
  }
  return made_;
}

// Who comes for the first time is shown what there is: for all that is known, it is old.
Page MetricsServer::page_for_prometheus(const std::string& peer) {
  const auto now = Clock::now();
  const auto known = scrapers_.find(peer);
  if (known == scrapers_.end()) {
    if (scrapers_.size() == kMostScrapers) {
      scrapers_.erase(
          std::min_element(scrapers_.begin(), scrapers_.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; }));
    }
    scrapers_.emplace(peer, now);
    return fresh_page();
  }
  if (now - known->second < kFresh) return fresh_page();  // nobody scrapes so often
  return page_(std::exchange(known->second, now));
}

}  // namespace oomrec::tools::service
