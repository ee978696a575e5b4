#include "tools/service/ship/shipper.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/bundle/directory.h"
#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/terminal.h"
#include "tools/bundles/recover/dead_process.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/lives.h"
#include "tools/recording/reading/recording.h"
#include "tools/service/ship/ledger.h"
#include "tools/service/ship/shipment.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstDelay = 1s, kLongestDelay = 5min;
// curl ends by itself after five minutes at most.
constexpr auto kTimeout = 6min;
// When the processes of a job die together, their hosts do not send all archives at once.
constexpr std::chrono::milliseconds kSpread = 5s;
// A process that could not get memory mostly ends soon, and its row says how.
constexpr auto kAwaitEnd = 5s;
constexpr unsigned kTriesToRead = 3;
constexpr std::size_t kMostLivesAtOnce = 20;

bool is_complete_bundle(const fs::path& path) {
  std::error_code error;
  return bundle::is_bundle_name(path.filename().native()) &&
         fs::is_regular_file(path / "manifest.json", error) && bundles::is_own_bundle(path);
}

}  // namespace

Shipper::Shipper(ShipSettings settings, const std::set<fs::path>& directories)
    : settings_(std::move(settings)) {
  for (const fs::path& directory : directories)
    directories_.insert(bundles::absolute_directory(directory));
  refresh();
}

// --- what is to be shipped -----------------------------------------------------------------------

void Shipper::on_found(const bundles::Session& session, bool) try {
  if (session.unfinished) return;
  const std::string directory = bundles::dump_directory_of(recording::Recording{session.path});
  if (!directory.empty()) directories_.insert(bundles::absolute_directory(directory));
} catch (const Error&) {
  // Deleted by its own process.
}

void Shipper::on_bundle(const fs::path& bundle) {
  if (!bundle.empty()) directories_.insert(bundles::absolute_directory(bundle.parent_path()));
  refresh();
  start(Shipment::Part::row);  // the watcher may be busy with other deaths for a while
}

void Shipper::on_gone(const fs::path&, const bundles::RecoveryResult* recovered) {
  on_bundle(recovered != nullptr ? recovered->bundle : fs::path{});
}

void Shipper::on_memory_pressure(const fs::path&, const fs::path& bundle) { on_bundle(bundle); }

void Shipper::refresh() {
  std::map<Shipment, Attempts> found;
  for (const fs::path& directory : directories_) find_shipments(directory, found);
  waiting_ = std::move(found);
  std::set<fs::path> unshipped;
  for (const auto& [shipment, attempts] : waiting_) unshipped.insert(shipment.bundle);
  std::erase_if(unshipped, bundles::is_life);
  const ShipFigures before = figures_;
  figures_.unshipped = unshipped.size();
  if (on_change_ && figures_ != before) on_change_();
}

void Shipper::find_shipments(const fs::path& directory, std::map<Shipment, Attempts>& found) {
  const Ledger ledger{directory};
  for (const fs::path& path : entries_of(directory)) {
    const Arrived& arrived = ledger.of(path.filename());
    if (arrived.unreadable || (arrived.final_row && !arrived.awaits_raw()) ||
        !is_complete_bundle(path))
      continue;
    ledger.begin();
    const auto add = [&](Shipment::Part part) {
      const Shipment shipment{part, path};
      const auto known = waiting_.find(shipment);
      Attempts attempts =
          known != waiting_.end() ? known->second : Attempts{0, first_try(shipment)};
      // Its process may have ended meanwhile.
      if (part == Shipment::Part::row && attempts.failed == 0)
        attempts.next = std::min(attempts.next, first_try(shipment));
      found.emplace(shipment, attempts);
    };
    if (!arrived.final_row && (!arrived.row || !awaits_end(path))) add(Shipment::Part::row);
    if (arrived.awaits_raw()) add(Shipment::Part::raw);
  }
  for (const fs::path& file : bundles::lives_in(directory)) {
    const Shipment shipment{Shipment::Part::row, file};
    const auto known = waiting_.find(shipment);
    found.emplace(shipment, known != waiting_.end() ? known->second : Attempts{0, Clock::now()});
  }
}

Shipper::Clock::time_point Shipper::first_try(const Shipment& shipment) {
  const auto now = Clock::now();
  if (is_emptying_) return now;
  if (shipment.part == Shipment::Part::raw) return now + kSpread * (random_() % 1000) / 1000;
  return awaits_end(shipment.bundle) ? now + kAwaitEnd : now;
}

// --- shipping ------------------------------------------------------------------------------------

// Twice as long each time, and up to half of it less, so that hosts do not come back together.
Shipper::Clock::duration Shipper::delay_after(unsigned failures) {
  const auto longest = std::min(kFirstDelay * (1 << std::min(failures - 1, 16u)), kLongestDelay);
  return longest - longest * (random_() % 500) / 1000;
}

// Those that failed least come first: one that always fails holds up no other. The rows of lives
// come last and few at a time: a death's row does not wait for them.
std::vector<Shipment> Shipper::due(Shipment::Part part) const {
  const auto now = Clock::now();
  std::vector<Shipment> shipments;
  for (const auto& [shipment, attempts] : waiting_)
    if (shipment.part == part && attempts.next <= now) shipments.push_back(shipment);
  std::ranges::stable_sort(shipments, [&](const auto& a, const auto& b) {
    const bool is_of_life = bundles::is_life(a.bundle), other = bundles::is_life(b.bundle);
    return is_of_life != other ? other : waiting_.at(a).failed < waiting_.at(b).failed;
  });
  std::size_t lives = 0;
  std::erase_if(shipments, [&](const Shipment& shipment) {
    return bundles::is_life(shipment.bundle) && ++lives > kMostLivesAtOnce;
  });
  return shipments;
}

void Shipper::start(Shipment::Part part) {
  Lane& lane = lanes_[static_cast<std::size_t>(part)];
  if (lane.child) return;
  lane.shipments = due(part);
  if (lane.shipments.empty()) return;
  const unsigned failed = waiting_.at(lane.shipments.front()).failed;
  try {
    lane.scratch = std::make_unique<TemporaryDirectory>();
  } catch (const Error& error) {
    remark(fmt::format("--ship: {}: {}", error.what(), error.what_to_do()));
    return finish(lane, part, 1);
  }
  const auto work = [&] {
    const int failures = ship(lane.shipments, settings_, directories_, lane.scratch->path(),
                              failed + 1 >= kTriesToRead);
    return std::min(failures, 255);
  };
  lane.child = ChildProcess::start(work, {}, kTimeout);
  if (!lane.child) {
    remark(fmt::format("--ship: {}", std::strerror(errno)));
    finish(lane, part, 1);
  }
}

// `failures`: what the child counted. What arrived is in the ledgers.
void Shipper::finish(Lane& lane, Shipment::Part part, int failures) {
  lane.child.reset();
  lane.scratch.reset();
  figures_.errors += static_cast<unsigned>(failures);
  refresh();
  std::uint64_t& arrived = part == Shipment::Part::row ? figures_.rows : figures_.raws;
  for (const Shipment& shipment : lane.shipments) {
    const auto left = waiting_.find(shipment);
    if (left == waiting_.end()) {
      std::error_code ignored;
      // Retention may have deleted a bundle; the row of a life is deleted when it has arrived.
      if (bundles::is_life(shipment.bundle) || fs::exists(shipment.bundle, ignored)) ++arrived;
    } else if (failures != 0) {
      left->second.next = Clock::now() + delay_after(++left->second.failed);
    }
  }
  if (on_change_) on_change_();
}

void Shipper::on_poll(std::span<const pollfd>) {
  for (const Shipment::Part part : {Shipment::Part::row, Shipment::Part::raw}) {
    Lane& lane = lanes_[static_cast<std::size_t>(part)];
    if (lane.child) {
      if (const std::optional<int> wait_status = lane.child->poll())
        finish(lane, part, WIFEXITED(*wait_status) ? WEXITSTATUS(*wait_status) : 1);
    }
    start(part);
  }
}

void Shipper::add_descriptors(std::vector<pollfd>& polled) const {
  for (const Lane& lane : lanes_)
    if (lane.child) lane.child->add_descriptor(polled);
}

std::optional<Shipper::Clock::time_point> Shipper::wake_time() const {
  std::optional<Clock::time_point> at;
  const auto consider = [&](std::optional<Clock::time_point> time) {
    if (time) at = std::min(at.value_or(*time), *time);
  };
  for (const Lane& lane : lanes_)
    if (lane.child) consider(lane.child->wake_time());
  for (const auto& [shipment, attempts] : waiting_)
    if (!lanes_[static_cast<std::size_t>(shipment.part)].child) consider(attempts.next);
  return at;
}

std::size_t Shipper::empty(Clock::time_point deadline) {
  is_emptying_ = true;
  refresh();
  for (auto& [shipment, attempts] : waiting_) attempts = {0, Clock::now()};
  for (;;) {
    on_poll({});
    const auto now = Clock::now();
    if ((waiting_.empty() && !is_busy()) || now >= deadline) break;
    std::vector<pollfd> polled;
    add_descriptors(polled);
    const auto until = std::min(wake_time().value_or(deadline), deadline);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - now);
    poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(0, wait.count())));
  }
  for (Lane& lane : lanes_) {
    if (lane.child) lane.child->end();
    lane = {};
  }
  refresh();
  std::set<fs::path> left;
  for (const auto& [shipment, attempts] : waiting_) left.insert(shipment.bundle);
  return left.size();
}

void ShipOptions::add_to(Arguments& arguments, const std::string& timeout) {
  arguments.option("--ship", "URL", url,
                   "send a row of each bundle, and redacted bundles, to s3://BUCKET/PREFIX (by "
                   "curl, with the key in AWS_*), https://…{name}…, file:///DIR, or the URL in "
                   "@FILE");
  arguments.option("--ship-exec", "COMMAND", command,
                   "send them by COMMAND, run by sh; $1 or OOMREC_SHIP_FILE: the file, $2 or "
                   "OOMREC_SHIP_NAME: its name");
  arguments.option("--ship-raw", "N", raw_bundles,
                   "send at most N bundles of one signature a day (3); 0: only rows");
  arguments.option("--ship-timeout", "SECONDS", timeout_s, timeout);
}

void ShipOptions::check(const Arguments& arguments) const {
  if (!url.empty() && !command.empty())
    throw Error{Exit::bad_input, "--ship and --ship-exec cannot both be given",
                "Choose one of them."};
  for (const char* const name : {"--ship-raw", "--ship-timeout"})
    if (arguments.given(name) && !wants_any())
      throw Error{Exit::bad_input, std::string{name} + " needs a way to ship bundles",
                  "Add --ship or --ship-exec."};
  if (wants_any() && raw_bundles != 0) archive_suffix();
}

ShipSettings ShipOptions::settings() const {
  return {url.empty() ? put_by_command(command) : put_to_url(url), raw_bundles};
}

}  // namespace oomrec::tools::service
