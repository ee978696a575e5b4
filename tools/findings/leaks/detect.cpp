#include "tools/findings/leaks/detect.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "common/text/own_code.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/ranks/identity.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/recording/analysis/common_names.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/recording/reading/timeline.h"
#include "tools/recording/symbolize/function_name.h"
#include "tools/sections/other_processes.h"

namespace oomrec::tools::findings {
namespace {

constexpr double kLeastShareOfSum = 0.5;
constexpr double kStart = 0.25;  // of the time: what a program loads first is no growth

// Whether the import system requested the memory, and no own line of the program inside of it.
bool is_import(recording::StackId stack, const recording::Stacks& stacks,
               const recording::Locations& locations) {
  for (; stack != 0; stack = stacks.parent(stack)) {
    const recording::Location& location = locations[stacks.innermost(stack)];
    if (location.kind != recording::Location::Kind::python) continue;
    if (recording::is_import_machinery(location)) return true;
    if (text::is_programs_own(location.file)) return false;
  }
  return false;
}

// Combines the fit, the steadiness of the growth, and the share of blocks that survived.
double confidence_of(const Growth& growth, double survivors) {
  return 0.5 * growth.r_squared + 0.3 * growth.steadiness + 0.2 * survivors;
}

// Devices on which the total that the process holds grows.
std::vector<DeviceGrowth> growing_devices(const recording::Recording& recording,
                                          const recording::Timeline& timeline) {
  std::map<std::uint32_t, HeldCurve> curves;
  for (const recording::Moment& moment : timeline.moments) {
    const double seconds = seconds_of(moment.time_ns, recording);
    for (const recording::DeviceMoment& device : moment.devices)
      curves[device.device].add(seconds, static_cast<double>(device.counted_bytes));
  }
  std::vector<DeviceGrowth> rows;
  for (const auto& [entry, curve] : curves) {
    if (const auto growth = growth_of(curve))
      rows.push_back({recording::device_label(recording, entry), *growth});
  }
  return rows;
}

// Sums of groups that were requested by the same chain of functions, from any of their lines. One
// line may fill a cache, and another line refill what was dropped from it.
class Chains {
 public:
  Chains(const std::vector<StackGroup>& groups, const recording::Stacks& stacks,
         const recording::Locations& locations)
      : names_(recording::NameLevel::symbol), chain_of_(stacks, locations, names_) {
    for (const StackGroup& group : groups) add(sums_[key_of(group)], group);
  }

  const StackGroup& sum_with(const StackGroup& group) { return sums_[key_of(group)]; }

 private:
  std::pair<recording::CommonStack, Space> key_of(const StackGroup& group) {
    return {chain_of_.of(group.stack), group.space};
  }

  recording::CommonNames names_;
  recording::SideStacks chain_of_;
  std::map<std::pair<recording::CommonStack, Space>, StackGroup> sums_;
};

class Detector {
 public:
  Detector(const recording::Recording& recording, recording::Stacks& stacks,
           const recording::Locations& locations, Until until)
      : recording_(recording), stacks_(stacks), locations_(locations), curves_(recording, until) {}

  Leaks leaks() {
    found_.checkpoints = curves_.checkpoints();
    found_.seconds = curves_.seconds();
    if (const recording::Checkpoint* const last = curves_.before_exit())
      found_.before_end_s = age_s(last->time_ns);
    if (!found_.has_enough_checkpoints()) return std::move(found_);
    std::vector<StackGroup> groups = groups_of(held(), stacks_);
    subjects_ = recording::subjects_of(stacks_, locations_);
    Chains chains{groups, stacks_, locations_};
    std::erase_if(groups, [&](const StackGroup& group) {
      return is_import(group.stack, stacks_, locations_) ||
             add_if_leak(group, 1, chains.sum_with(group));
    });
    add_leaking_subjects(groups);
    if (!found_.unsteady) found_.unsteady = stopped_;
    if (found_.detected()) found_.unsteady.reset();
    std::ranges::sort(found_.leaks, [](const Leak& a, const Leak& b) {
      return a.growth.bytes != b.growth.bytes ? a.growth.bytes > b.growth.bytes : a.stack < b.stack;
    });
    name_devices();
    found_.devices = growing_devices(recording_, recording::timeline_of(recording_));
    return std::move(found_);
  }

 private:
  std::vector<recording::HolderFigures> held() const {
    std::vector<recording::HolderFigures> holders = recording_.holders();
    std::erase_if(holders, [&](const recording::HolderFigures& row) {
      return is_address_space(row.space) || row.is_object_pool || !curves_.has_curve(row.entry);
    });
    if (curves_.before_exit() != nullptr)
      set_figures(holders, *curves_.before_exit());
    else
      recording_.add_ages(holders);
    return holders;
  }

  // To those of this checkpoint.
  static void set_figures(std::vector<recording::HolderFigures>& holders,
                          const recording::Checkpoint& at) {
    std::unordered_map<std::uint32_t, std::uint64_t> bytes_of;
    for (const recording::CheckpointRow& row : at.largest) bytes_of[row.holder] = row.live_bytes;
    for (recording::HolderFigures& holder : holders) {
      const auto found = bytes_of.find(holder.entry);
      holder.live_bytes = found != bytes_of.end() ? found->second : 0;
      const double of_peak = holder.peak_bytes == 0 ? 0
                                                    : static_cast<double>(holder.live_bytes) /
                                                          static_cast<double>(holder.peak_bytes);
      holder.live_count = static_cast<std::uint64_t>(
          std::llround(of_peak * static_cast<double>(holder.peak_count)));
    }
  }

  // Adds the group to the leaks if it is one; returns whether it is. `sum` contains the group: if
  // the group grows and `sum` does not, memory has only moved between its parts.
  bool add_if_leak(const StackGroup& group, std::size_t stacks, const StackGroup& sum) {
    if (static_cast<double>(group.live_bytes) < kLeastGrowthBytes) return false;
    const HeldCurve curve = curves_.of(group);
    const auto growth = growth_of(curve, sample_bytes_of(group));
    if (!growth) return false;
    const bool alone = sum.holders.size() == group.holders.size();
    if (!alone &&
        retained_since(curves_.of(sum), 0.5) < kLeastShareOfSum * retained_since(curve, 0.5))
      return false;
    Leak leak;
    leak.stack = group.stack;
    leak.stacks = stacks;
    leak.subject = subjects_[group.stack];
    leak.space = group.space;
    leak.estimated = group.estimated;
    leak.growth = *growth;
    leak.live_bytes = group.live_bytes;
    leak.live_count = group.live_count;
    const auto ever = static_cast<double>(std::max(group.total_bytes, group.live_bytes));
    leak.survivors = static_cast<double>(group.live_bytes) / ever;
    if (group.oldest_ns) leak.oldest_s = age_s(*group.oldest_ns);
    leak.confidence = confidence_of(*growth, leak.survivors);
    found_.leaks.push_back(std::move(leak));
    return true;
  }

  double age_s(std::uint64_t birth_ns) const {
    const std::uint64_t end = recording_.end_ns();
    return end > birth_ns ? static_cast<double>(end - birth_ns) / 1e9 : 0;
  }

  // Checks the groups that do not leak alone, summed by subject.
  void add_leaking_subjects(const std::vector<StackGroup>& groups) {
    struct Sum {
      StackGroup group;
      std::uint64_t largest_bytes = 0;
      std::size_t stacks = 0;
    };
    std::map<std::pair<recording::LocationId, Space>, Sum> sums;
    for (const StackGroup& group : groups) {
      Sum& sum = sums[{subjects_[group.stack], group.space}];
      sum.group.space = group.space;
      const recording::StackId stack =
          group.live_bytes > sum.largest_bytes ? group.stack : sum.group.stack;
      sum.largest_bytes = std::max(sum.largest_bytes, group.live_bytes);
      add(sum.group, group);
      sum.group.stack = stack;
      ++sum.stacks;
    }
    for (const auto& [subject, sum] : sums) {
      const bool leaks =
          subject.first != 0 && sum.stacks > 1 && add_if_leak(sum.group, sum.stacks, sum.group);
      if (leaks) continue;
      consider_unsteady(sum.group);
      consider_stopped(sum.group);
    }
  }

  // Of a group that grew like a leak until it had nearly what it has now. What has grown since
  // counts more.
  void consider_stopped(const StackGroup& group) {
    constexpr double kLeastBytes = 8 << 20, kNearly = 0.98;
    HeldCurve curve = curves_.of(group);
    if (curve.size() == 0) return;
    const double last_s = curve.seconds.back();
    const auto reached = std::ranges::find_if(
        curve.bytes, [&](double bytes) { return bytes >= kNearly * curve.bytes.back(); });
    const auto size = static_cast<std::size_t>(reached - curve.bytes.begin()) + 1;
    if (size >= curve.size()) return;
    curve.seconds.resize(size);
    curve.bytes.resize(size);
    const auto growth = growth_of(curve, sample_bytes_of(group));
    if (!growth || growth->bytes < kLeastBytes) return;
    if (!stopped_ || growth->bytes > stopped_->bytes)
      stopped_ = Unsteady{group.stack, group.space, group.estimated, growth->bytes,
                          last_s - curve.seconds.back()};
  }

  // Of a group that is no leak.
  void consider_unsteady(const StackGroup& group) {
    const double bytes = retained_since(curves_.of(group), kStart);
    const double live = static_cast<double>(group.live_bytes);
    if (bytes < kLeastGrowthBytes ||
        (group.estimated && !is_significant(live - bytes, live, sample_bytes_of(group))))
      return;
    if (!found_.unsteady || bytes > found_.unsteady->bytes)
      found_.unsteady = Unsteady{group.stack, group.space, group.estimated, bytes, {}};
  }

  // What one sample stands for; 0: the group's figures are exact.
  double sample_bytes_of(const StackGroup& group) const {
    return group.estimated ? static_cast<double>(recording_.header().interval_bytes) : 0;
  }

  // Sets the device of each leak whose device memory is all on one.
  void name_devices() {
    std::unordered_map<std::uint64_t, std::string> device_of;  // by stack and space
    const auto key = [&](recording::StackId stack, Space space) {
      return std::uint64_t{stacks_.reduced(stack)} << 8 | static_cast<std::uint64_t>(space);
    };
    for (const recording::DeviceFigures& device : recording::devices_of(recording_, 0)) {
      for (const recording::HolderFigures& row : recording::holders_on(recording_, device.entry)) {
        const auto [at, is_new] =
            device_of.try_emplace(key(stacks_.of_node(row.node), row.space), device.label);
        if (!is_new && at->second != device.label) at->second.clear();
      }
    }
    for (Leak& leak : found_.leaks) {
      const auto at = device_of.find(key(leak.stack, leak.space));
      if (at != device_of.end()) leak.device = at->second;
    }
  }

  const recording::Recording& recording_;
  recording::Stacks& stacks_;
  const recording::Locations& locations_;
  const Curves curves_;
  std::vector<recording::LocationId> subjects_;
  std::optional<Unsteady> stopped_;
  Leaks found_;
};

// Sums over the leaks in spaces that add up; if there are none, over the others.
double sum_of(const std::vector<Leak>& leaks, double Growth::*figure) {
  double own = 0;
  double inside_others = 0;
  for (const Leak& leak : leaks)
    (is_additive(leak.space) ? own : inside_others) += leak.growth.*figure;
  return own > 0 ? own : inside_others;
}

}  // namespace

double Leaks::bytes() const { return sum_of(leaks, &Growth::bytes); }
double Leaks::bytes_per_second() const { return sum_of(leaks, &Growth::bytes_per_second); }

Leaks leaks_of(const recording::Recording& recording, recording::Stacks& stacks,
               const recording::Locations& locations, Until until) {
  return Detector{recording, stacks, locations, until}.leaks();
}

Until until_of(const bundles::Source& source) {
  return source.has_freed_most() ? Until::exit : Until::end;
}

std::string_view confidence_word(double confidence) {
  return confidence >= 0.8 ? "high" : confidence >= 0.5 ? "medium" : "low";
}

namespace {

namespace fs = std::filesystem;

std::string rank_text(const bundles::Source& source) {
  if (source.is_job()) return "all";
  const auto who = bundles::rank_of(source);
  return who ? std::to_string(who->rank) : std::string{};
}

std::string program_of(const recording::Recording& recording) {
  const std::vector<std::string> words = recording.arguments();
  return words.empty() ? std::string{} : printable(fs::path{words[0]}.filename().string());
}

ProcessLeaks row_of(const bundles::Source& source, Leaks leaks) {
  const auto pid = static_cast<std::uint64_t>(std::max(0, source.recording->header().pid));
  return {pid, rank_text(source), program_of(*source.recording), source.bundle.filename().string(),
          std::move(leaks)};
}

}  // namespace

std::vector<ProcessLeaks> process_leaks(const bundles::Source& source, const Leaks& own) {
  std::vector<ProcessLeaks> rows{row_of(source, own)};
  const auto add = [&](const bundles::Source& other) {
    recording::Stacks stacks{*other.recording, *other.locations,
                             recording::frames_of(*other.recording)};
    rows.push_back(
        row_of(other, leaks_of(*other.recording, stacks, *other.locations, until_of(other))));
  };
  if (source.is_job()) {
    bundles::for_each_rank(source, [&](const Json&, const bundles::Source& rank) { add(rank); });
  } else if (!source.bundle.empty()) {
    bundles::for_each_other_process(source, sections::related_processes(source).processes,
                                    [&](std::size_t, const bundles::Source& other) { add(other); });
  }
  std::stable_sort(rows.begin() + 1, rows.end(), [](const ProcessLeaks& a, const ProcessLeaks& b) {
    return a.leaks.bytes() > b.leaks.bytes();
  });
  return rows;
}

}  // namespace oomrec::tools::findings
