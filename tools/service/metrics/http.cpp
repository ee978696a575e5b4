#include "tools/service/metrics/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tools/service/metrics/exposition.h"

namespace oomrec::tools::service {
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
