// The endpoint that serves metrics: parses ADDR:PORT, and listens there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oomrec::tools::service {

struct Endpoint {
  std::string host;        // empty: loopback, of IPv4 and, if available, IPv6
  std::uint16_t port = 0;  // 0: any free port
};

// "9464", ":9464", "0.0.0.0:9464", "[::1]:9464", "localhost:9464". Throws Error with bad_input.
Endpoint endpoint_in(const std::string& text);

struct ListeningSockets {
  std::vector<int> sockets;  // non-blocking
  std::string url;           // "http://127.0.0.1:9464/metrics"
};

// Throws Error with bad_input if it cannot listen there.
ListeningSockets listen_at(const Endpoint& endpoint);

}  // namespace oomrec::tools::service
