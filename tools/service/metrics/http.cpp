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

struct Asked {
  std::string_view method, path;
};

bool is_token(std::string_view word) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return !word.empty() && word.find_first_not_of(kLetters) == word.npos;
}

// Empty where the line is none of HTTP/1: METHOD SP TARGET SP HTTP/1.x
Asked asked_by(std::string_view received) {
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

Answer answer(std::string_view status, std::string_view type, const Page& body, bool with_body,
              std::string_view more = {}) {
  return {fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
                      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{}"
                      "Connection: close\r\n\r\n",
                      status, type, body->size(), more),
          with_body ? body : nullptr};
}

Page page_of(std::string_view text) { return std::make_shared<const std::string>(text); }

Answer problem(std::string_view status, std::string_view more = {}, bool with_body = true) {
  return answer(status, kPlain, page_of(fmt::format("{}\n", status)), with_body, more);
}

// It says so in a header of its own.
bool is_prometheus(std::string_view received) {
  constexpr std::string_view kHeader = "\nx-prometheus-scrape-timeout-seconds:";
  std::string lower{received};
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find(kHeader) != lower.npos;
}

}  // namespace

bool is_whole_request(std::string_view received) {
  return received.find("\r\n\r\n") != received.npos || received.find("\n\n") != received.npos ||
         received.size() > kMostRequestBytes;
}

Answer answer_to(std::string_view received, const std::function<Page(bool)>& metrics) {
  if (received.size() > kMostRequestBytes) return problem("431 Request Header Fields Too Large");
  const Asked asked = asked_by(received);
  if (asked.method.empty()) return problem("400 Bad Request");
  const bool is_get = asked.method == "GET";
  if (!is_get && asked.method != "HEAD")
    return problem("405 Method Not Allowed", "Allow: GET, HEAD\r\n");
  if (asked.path == "/metrics")
    return answer("200 OK", kExpositionType, metrics(is_prometheus(received)), is_get);
  if (asked.path == "/") return answer("200 OK", kHtml, page_of(kStartPage), is_get);
  return problem("404 Not Found", {}, is_get);
}

}  // namespace oomrec::tools::service
