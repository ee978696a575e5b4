// Serves the metrics in the watcher's poll loop. No client, however slow or hostile, can block the
// watcher.
//
// Sockets are non-blocking. A connection is closed after ten seconds. There are at most 32: a
// further one replaces the oldest. A page is cached for 250 ms, except that each Prometheus gets
// its own: a series that is new to it must begin at 0.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/service/fleet/listener.h"
#include "tools/service/metrics/endpoint.h"

namespace oomrec::tools::service {

// The part of HTTP that a scrape needs: parses the first line of a request, and makes a response
// that closes the connection. Requests are untrusted input: apart from that line, it only searches
// them for one header.

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

class MetricsServer : public PollClient {
 public:
  // Makes the current page, for a client whose previous scrape was at that time.
  using MakePage = std::function<Page(std::optional<Clock::time_point> last_scrape)>;

  MetricsServer(ListeningSockets listening, MakePage page);
  ~MetricsServer() override;

  void add_descriptors(std::vector<pollfd>&) const override;
  std::optional<Clock::time_point> wake_time() const override;
  void on_poll(std::span<const pollfd>) override;

 private:
  struct Connection {
    int descriptor;
    std::string peer;  // its address, without the port
    Clock::time_point deadline;
    std::string received = {};
    std::optional<Response> response = {};  // once the request is complete
    std::size_t sent = 0;                   // of the response
    std::size_t ignored = 0;                // bytes received after the request
    bool has_ended = false;                 // the client has closed its side
    bool done = false;
    bool is_sending() const;
  };
  void accept_all(int socket);
  void serve(Connection& connection);
  void receive(Connection& connection);
  void send_more(Connection& connection);
  Page cached_page();
  Page page_for_prometheus(const std::string& peer);

  const ListeningSockets listening_;
  const MakePage make_page_;
  std::vector<Connection> connections_;                // the oldest first
  std::map<std::string, Clock::time_point> scrapers_;  // time of the last scrape, by address
  Page cached_page_;
  Clock::time_point cached_at_{};
  std::optional<Clock::time_point> accept_resumes_{};  // set while we are out of descriptors
};

}  // namespace oomrec::tools::service
