#include "tools/bundles/ranks/combined.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <utility>

#include "tools/bundles/ranks/combined_figures.h"
#include "tools/bundles/ranks/combined_names.h"
#include "tools/recording/reading/image.h"

namespace oomrec::tools::bundles {
namespace {

using session::TableId;

void add_to(session::Atomic<std::uint64_t>& sum, std::uint64_t value) {
  sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

// A lane's counters for spaces, sizes and functions are adjacent words, which can be added as one
// array.
using LaneCounters = std::array<std::uint64_t, (offsetof(session::Lane, sums_offset) -
                                                offsetof(session::Lane, spaces)) /
                                                   sizeof(std::uint64_t)>;
static_assert(sizeof(LaneCounters) == sizeof(session::Lane::spaces) + sizeof(session::Lane::sizes) +
                                          sizeof(session::Lane::apis));
static_assert(sizeof(session::SpaceCounters) == 6 * sizeof(std::uint64_t) &&
                  sizeof(session::Tally) == 2 * sizeof(std::uint64_t),
              "add the new counters up, too");

std::byte* bytes_of(session::Lane& lane) { return reinterpret_cast<std::byte*>(&lane); }

static_assert(sizeof(session::Failure) == 392,
              "translate a new field if it is an index into a table");

void add_to(session::Tally& sum, const session::Tally& part) {
  add_to(sum.count, part.count);
  add_to(sum.bytes, part.bytes);
}

class Combiner {
 public:
  explicit Combiner(const Job& job) : job_(job), names_(image_), start_ns_(start_of(job)) {
    for (const JobRank& rank : job.ranks) parts_.emplace_back(rank, names_, start_ns_);
  }

  CombinedRecording take() {
    fill_header();
    add_combined_devices(image_, parts_);
    for (RankPart& part : parts_) {
      add_threads(part);
      add_counters(part);
      add_holders(part);
      add_failures(part);
      add_marks(part);
    }
    add_combined_device_blocks(image_, parts_);
    add_api_tallies();
    add_combined_over_time(image_, parts_);
    CombinedRecording combined;
    combined.failure = failure_;
    combined.bytes = std::shared_ptr<const std::byte>{image_.finish(combined.count)};
    return combined;
  }

 private:
  static std::uint64_t start_of(const Job& job) {
    std::uint64_t start = ~std::uint64_t{0};
    for (const JobRank& rank : job.ranks)
      start = std::min(start, rank.realtime_of(rank.source.recording->header().start_monotonic_ns));
    return start;
  }

  // Leaves out what only a single process has, such as a pid.
  void fill_header() {
    RankPart& lead = parts_.front();
    const session::Header& own = lead.recording().header();
    const session::StringId command_line = lead.names.string(own.command_line);
    const session::StringId executable = lead.names.string(own.executable);
    const session::StringId directory = lead.names.string(own.working_directory);
    const session::StringId job = image_.string(job_.id);
    session::Header& header = image_.header();
    header.start_realtime_ns = start_ns_;
    header.start_monotonic_ns = kCombinedStartNs;
    header.command_line = command_line;
    header.executable = executable;
    header.working_directory = directory;
    header.rank.world_size = job_.world_size;
    header.rank.job = job;
    if (job_.hosts() == 1) std::memcpy(header.host, own.host, sizeof header.host);
    std::strncpy(header.oomrec_version, OOMREC_VERSION, sizeof header.oomrec_version - 1);
    header.mode = static_cast<std::uint8_t>(Mode::exact);
    header.mode_now = static_cast<std::uint32_t>(Mode::exact);
    for (const RankPart& part : parts_) add_to_header(part.recording(), header);
    std::uint64_t end_ns = kCombinedStartNs;
    for (const RankPart& part : parts_)
      end_ns = std::max(end_ns, part.time(part.recording().end_ns()));
    header.last_tick_ns = end_ns;
  }

  static void add_to_header(const recording::Recording& recording, session::Header& header) {
    const session::Header& own = recording.header();
    if (recording.estimated()) {
      header.mode = static_cast<std::uint8_t>(Mode::sampled);
      header.mode_now = static_cast<std::uint32_t>(Mode::sampled);
      header.interval_bytes = std::max(header.interval_bytes, own.interval_bytes);
      header.large_bytes = std::max(header.large_bytes, own.large_bytes);
    }
    if (header.python.version_hex == 0) {
      header.python.version_hex = own.python.version_hex;
      header.python.source = own.python.source;
      header.python.objects = own.python.objects;
    }
    header.health.rss_bytes = header.health.rss_bytes + own.health.rss_bytes;
    add_to(header.dropped_events, own.dropped_events);
    add_to(header.truncated_stacks, own.truncated_stacks);
    add_to(header.forgotten_stacks, own.forgotten_stacks);
    add_to(header.failures_total, own.failures_total);
    add_to(header.probes_total, own.probes_total);
    header.dropped_marks = header.dropped_marks + own.dropped_marks;
    for (std::size_t space = 0; space < kSpaceCount; ++space)
      add_to(header.spaces[space].reserved_bytes, own.spaces[space].reserved_bytes);
  }

  void add_threads(RankPart& part) {
    part.threads.assign(part.view().count(TableId::threads), 0);
    session::Thread thread{};
    for (std::uint32_t i = 1; i < part.threads.size(); ++i) {
      if (!part.view().read(TableId::threads, i, thread)) continue;
      thread.group = part.names.string(thread.group);
      thread.first_seen_ns = part.time(thread.first_seen_ns);
      part.threads[i] = image_.add(TableId::threads, thread);
    }
  }

  // Sums the lanes of a rank into one.
  void add_counters(const RankPart& part) {
    LaneCounters sum{}, counters{};
    for (auto& lane : session::entries<session::Lane>(part.view(), TableId::lanes)) {
      std::memcpy(counters.data(), bytes_of(lane) + offsetof(session::Lane, spaces),
                  sizeof counters);
      for (std::size_t i_word = 0; i_word < sum.size(); ++i_word) sum[i_word] += counters[i_word];
    }
    session::Lane all{};
    std::memcpy(bytes_of(all) + offsetof(session::Lane, spaces), sum.data(), sizeof sum);
    image_.add(TableId::lanes, all);
  }

  void add_api_tallies() {
    std::deque<session::Tally> sums;
    session::Tally tally{};
    for (const RankPart& part : parts_) {
      const std::uint64_t count = part.view().count(TableId::api_tallies);
      while (sums.size() < count) sums.emplace_back();
      for (std::uint64_t i = 1; i < count; ++i)
        if (part.view().read(TableId::api_tallies, i, tally)) add_to(sums[i], tally);
    }
    for (std::size_t i = 1; i < sums.size(); ++i) image_.add(TableId::api_tallies, sums[i]);
  }

  // Each rank at its own peak: the peak of their sum is not recorded.
  void add_holders(RankPart& part) {
    part.holders.assign(part.view().count(TableId::holders), 0);
    for (const recording::HolderFigures& row : part.recording().holders()) {
      session::Holder holder{};
      holder.node = part.names.node(row.node);
      holder.space = static_cast<std::uint8_t>(row.space);
      holder.flags = row.estimated ? session::kHolderEstimated : 0;
      holder.api = static_cast<std::uint16_t>(row.api);
      holder.live_bytes = row.live_bytes;
      holder.live_count = row.live_count;
      holder.total_bytes = row.total_bytes;
      holder.total_count = row.total_count;
      holder.peak_bytes = row.peak_bytes;
      holder.peak_count = row.peak_count;
      holder.temporary_count = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(row.temporary_count, ~std::uint32_t{0}));
      part.holders[row.entry] = image_.add(TableId::holders, holder);
    }
  }

  void add_failures(RankPart& part) {
    const bool is_first = job_.first && &job_.ranks[*job_.first] == &part.rank;
    const std::uint32_t lead = is_first ? part.rank.source.failure() : 0;
    session::Failure failure{};
    for (std::uint32_t i = 1; i < part.view().count(TableId::failures); ++i) {
      if (!part.view().read(TableId::failures, i, failure)) continue;
      failure.time_ns = part.time(failure.time_ns);
      failure.realtime_ns += static_cast<std::uint64_t>(part.rank.shift_ns);
      failure.last_ns = part.time(failure.last_ns);
      failure.node = part.names.node(failure.node);
      failure.thread = RankPart::at(part.threads, failure.thread);
      failure.device.device = RankPart::at(part.devices, failure.device.device);
      failure.rule = part.names.string(failure.rule);
      const std::uint32_t entry = image_.add(TableId::failures, failure);
      if (i == lead) failure_ = entry;
    }
  }

  void add_marks(RankPart& part) {
    for (const recording::TimeMark& mark : recording::timeline_of(part.recording()).marks) {
      texts_.push_back(fmt::format("rank {}: {}", part.rank.identity.rank, mark.text));
      image_.add(TableId::marks,
                 session::Mark{part.time(mark.time_ns), image_.string(texts_.back()),
                               RankPart::at(part.threads, mark.thread)});
    }
  }

  const Job& job_;
  recording::Image image_;
  CombinedNames names_;
  const std::uint64_t start_ns_;  // real time, on the job's clock
  std::deque<RankPart> parts_;
  std::deque<std::string> texts_;  // must outlive the image, which refers to them
  std::uint32_t failure_ = 0;
};

}  // namespace

CombinedRecording combined_recording(const Job& job) { return Combiner{job}.take(); }

}  // namespace oomrec::tools::bundles
