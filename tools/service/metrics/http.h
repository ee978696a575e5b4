// The part of HTTP that a scrape needs: parses the first line of a request, and makes a response
// that closes the connection. Requests are untrusted input: apart from that line, it only searches
// them for one header.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace oomrec::tools::service {

inline constexpr std::size_t kMostRequestBytes = 64 * 1024;

// Whether `received` contains a complete request head, or is too long to become one.
bool is_complete_request(std::string_view received);

using Page = std::shared_ptr<const std::string>;  // several connections may send the same one

struct Response {
  std::string head;
  Page body;  // null: no body, as for HEAD
};

// The response to `received`, a complete request. Calls `metrics` only for /metrics.
// `by_prometheus`: the client scrapes repeatedly and computes increases.
Response response_to(std::string_view received,
                     const std::function<Page(bool by_prometheus)>& metrics);

}  // namespace oomrec::tools::service
