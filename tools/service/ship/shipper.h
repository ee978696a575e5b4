// Ships every bundle of some dump directories, in child processes: rows in one, archives in
// another.
//
// It keeps nothing that a restart would need: what is still to be shipped are the bundles without
// their lines in the ledger of their directory. What fails is tried again after a second, later
// after up to five minutes.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tools/base/arguments.h"
#include "tools/base/directory.h"
#include "tools/service/fleet/child_process.h"
#include "tools/service/fleet/figures.h"
#include "tools/service/fleet/listener.h"
#include "tools/service/ship/shipment.h"

namespace oomrec::tools::service {

class Shipper : public Listener, public PollClient {
 public:
  Shipper(ShipSettings settings, const std::set<std::filesystem::path>& directories);

  const ShipFigures& figures() const { return figures_; }
  // `callback` runs after a change of the figures.
  void on_change(std::function<void()> callback) { on_change_ = std::move(callback); }

  // Ships what is there now, without the delays of a service, until the deadline; then ends what is
  // under way. Returns the number of bundles and rows of lives
  // that are left.
  std::size_t empty(Clock::time_point deadline);

  void on_found(const bundles::Session&, bool same_pid_namespace) override;
  void on_gone(const std::filesystem::path& recording,
               const bundles::RecoveryResult* recovered) override;
  void on_memory_pressure(const std::filesystem::path& recording,
                          const std::filesystem::path& bundle) override;
  void on_scan() override { refresh(); }

  void add_descriptors(std::vector<pollfd>&) const override;
  std::optional<Clock::time_point> wake_time() const override;
  void on_poll(std::span<const pollfd>) override;

 private:
  struct Attempts {
    unsigned failed = 0;
    Clock::time_point next;
  };
  // A child and what it ships: the parts of one kind.
  struct Lane {
    std::optional<ChildProcess> child = {};
    std::vector<Shipment> shipments = {};
    std::unique_ptr<TemporaryDirectory> scratch = {};
  };

  void on_bundle(const std::filesystem::path& bundle);
  void refresh();
  void find_shipments(const std::filesystem::path& directory, std::map<Shipment, Attempts>& found);
  Clock::time_point first_try(const Shipment& shipment);
  Clock::duration delay_after(unsigned failures);
  std::vector<Shipment> due(Shipment::Part part) const;
  void start(Shipment::Part part);
  void finish(Lane& lane, Shipment::Part part, int failures);
  bool is_busy() const { return lanes_[0].child || lanes_[1].child; }

  const ShipSettings settings_;
  std::set<std::filesystem::path> directories_;
  std::map<Shipment, Attempts> waiting_;  // and those that are being shipped
  std::array<Lane, 2> lanes_;             // by Part
  ShipFigures figures_;
  bool is_emptying_ = false;
  std::function<void()> on_change_;
  std::minstd_rand random_{std::random_device{}()};
};

// The options of the commands that ship bundles.
struct ShipOptions {
  std::string url, command;  // empty: off
  unsigned raw_bundles = 3;
  unsigned timeout_s = 20;  // to ship what is left at the end

  // `timeout`: what --ship-timeout bounds, for --help.
  void add_to(Arguments& arguments, const std::string& timeout);
  bool wants_any() const { return !url.empty() || !command.empty(); }

  // Throws Error if they contradict each other, or nothing can be shipped this way.
  void check(const Arguments& arguments) const;
  ShipSettings settings() const;
};

}  // namespace oomrec::tools::service
