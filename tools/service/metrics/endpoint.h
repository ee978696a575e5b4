// Where metrics are served: ADDR:PORT as the user gives it, and the sockets that listen there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oomrec::tools::service {

struct Endpoint {
  std::string host;        // empty: loopback, of IPv4 and of IPv6 where there is one
  std::uint16_t port = 0;  // 0: one that is free
};

// "9464", ":9464", "0.0.0.0:9464", "[::1]:9464", "localhost:9464". Throws Error with bad_input.
Endpoint endpoint_in(const std::string& text);

struct Listening {
  std::vector<int> sockets;  // non-blocking
  std::string url;           // "http://127.0.0.1:9464/metrics"
};

// Throws Error with bad_input where nobody can listen there.
Listening listen_at(const Endpoint& endpoint);

}  // namespace oomrec::tools::service
