// Serves the metrics, in the watcher's own poll: no client, however slow or hostile, can keep it.
//
// Sockets never block; a connection has ten seconds in all, and there are at most 32: who comes
// then takes the place of the oldest. A page is made at most four times a second, but that each
// Prometheus gets its own: a series that is new to it is to begin at 0.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/service/fleet/poll_client.h"
#include "tools/service/metrics/endpoint.h"
#include "tools/service/metrics/http.h"

namespace oomrec::tools::service {

class MetricsServer : public Attendant {
 public:
  // What is there to be scraped now, by somebody who did it last at that time.
  using MakePage = std::function<Page(std::optional<Clock::time_point> last_scrape)>;

  MetricsServer(Listening listening, MakePage page);
  ~MetricsServer() override;

  void add_polled(std::vector<pollfd>&) const override;
  std::optional<Clock::time_point> wakes_at() const override;
  void attend(std::span<const pollfd>) override;

 private:
  struct Connection {
    int descriptor;
    std::string peer;  // its address, without the port
    Clock::time_point ends;
    std::string received = {};
    std::optional<Answer> answer = {};  // once the request is whole
    std::size_t sent = 0;               // of the answer
    std::size_t ignored = 0;            // bytes that came after the request
    bool has_ended = false;             // the client sends no more
    bool done = false;
    bool is_sending() const;
  };
  void accept_all(int socket);
  void attend_to(Connection& connection);
  void receive(Connection& connection);
  void send_more(Connection& connection);
  Page fresh_page();
  Page page_for_prometheus(const std::string& peer);

  const Listening listening_;
  const MakePage page_;
  std::vector<Connection> connections_;                // the oldest first
  std::map<std::string, Clock::time_point> scrapers_;  // by address: when they were here last
  Page made_;
  Clock::time_point made_at_{};
  std::optional<Clock::time_point> listens_again_{};  // there were no descriptors left
};

}  // namespace oomrec::tools::service
