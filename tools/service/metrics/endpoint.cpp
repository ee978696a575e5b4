#include "tools/service/metrics/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

constexpr int kBacklog = 64;
constexpr const char* kHint =
    "Give a port (9464), or an address and a port (0.0.0.0:9464, [::1]:9464).";

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses addresses_of(const char* host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw Error{Exit::bad_input,
                fmt::format("{} is not an address: {}", printable(host), gai_strerror(error)),
                kHint};
  }
  return Addresses{found};
}

// −1 on error, with errno.
int listening_socket(const addrinfo& address) {
  const int socket_ =
      socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (socket_ < 0) return -1;
  const int on = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(socket_, address.ai_addr, address.ai_addrlen) == 0 && listen(socket_, kBacklog) == 0)
    return socket_;
  const int error = errno;
  close(socket_);
  errno = error;
  return -1;
}

std::uint16_t port_of(int socket_) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string host_of(const addrinfo& address) {
  char host[NI_MAXHOST] = "?";
  getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return address.ai_family == AF_INET6 ? fmt::format("[{}]", host) : host;
}

}  // namespace

Endpoint endpoint_in(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Endpoint endpoint;
  std::string host = colon == text.npos ? "" : text.substr(0, colon);
  const auto port = parse_number<std::uint16_t>(colon == text.npos ? text : text.substr(colon + 1));
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  // An IPv6 address without brackets: its last part is not a port.
  const bool ambiguous = !bracketed && host.find(':') != host.npos;
  if (!port || ambiguous) {
    throw Error{Exit::bad_input,
                fmt::format("cannot serve metrics at {}: it is not an address with a port",
                            printable(text)),
                kHint};
  }
  // A machine without /etc/hosts may not know the name (RFC 6761, 6.3).
  if (host == "localhost") host.clear();
  endpoint.host = std::move(host);
  endpoint.port = *port;
  return endpoint;
}

// Loopback: IPv6 may be missing, IPv4 may not. A host name: one of its addresses is enough.
ListeningSockets listen_at(const Endpoint& endpoint) {
  std::vector<std::string> hosts = {endpoint.host};
  if (endpoint.host.empty()) hosts = {"127.0.0.1", "::1"};
  ListeningSockets listening;
  std::uint16_t port = endpoint.port;
  int problem = 0;
  for (const std::string& host : hosts) {
    const Addresses addresses = addresses_of(host.c_str(), port);
    for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
      const int socket_ = listening_socket(*at);
      if (socket_ < 0) {
        const bool has_no_family =
            errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL || errno == EPROTONOSUPPORT;
        if (problem == 0 && !(has_no_family && !listening.sockets.empty())) problem = errno;
        continue;
      }
      listening.sockets.push_back(socket_);
      if (listening.url.empty()) {
        port = port_of(socket_);
        listening.url = fmt::format("http://{}:{}/metrics", host_of(*at), port);
      }
      // The kernel has chosen the port: it may be in use at the other addresses.
      if (endpoint.port == 0) return listening;
    }
  }
  const bool taken = problem == EADDRINUSE;
  if (listening.sockets.empty() || taken) {
    for (const int socket_ : listening.sockets) close(socket_);
    throw Error{Exit::bad_input,
                fmt::format("cannot listen at {}:{}: {}", printable(endpoint.host), endpoint.port,
                            std::strerror(problem)),
                taken ? "Another program uses this port: choose another one." : kHint};
  }
  return listening;
}

}  // namespace oomrec::tools::service
