#include <algorithm>
#include <span>
#include <unordered_map>

#include "common/text/text.h"
#include "tools/base/error.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/store/stored_facts.h"
#include "tools/bundles/store/trigger.h"
#include "tools/findings/advice/heap_limit.h"
#include "tools/findings/leaks/detect.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/sections/resident_memory.h"

namespace oomrec::tools::findings {
namespace {

using session::TableId;

// Only the largest holders are evaluated: smaller ones cannot reach a rule's threshold.
constexpr std::size_t kMostHolders = 1000;

std::vector<recording::Location> copied(const std::vector<recording::LocationId>& ids,
                                        const recording::Locations& locations) {
  std::vector<recording::Location> stack;
  stack.reserve(ids.size());
  for (const recording::LocationId id : ids) stack.push_back(locations[id]);
  return stack;
}

std::vector<recording::HolderFigures> living_holders(const recording::Recording& recording) {
  std::vector<recording::HolderFigures> holders = recording.holders();
  std::erase_if(holders, [&](const recording::HolderFigures& holder) {
    return !is_additive(holder.space) || holder.is_object_pool || holder.weight_bytes() == 0 ||
           session::is_preexisting(recording.view(), holder.node);
  });
  return holders;
}

void keep_largest(std::vector<recording::HolderFigures>& holders) {
  const std::size_t kept = std::min(holders.size(), kMostHolders);
  std::partial_sort(
      holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(kept), holders.end(),
      [](const recording::HolderFigures& a, const recording::HolderFigures& b) {
        return a.weight_bytes() != b.weight_bytes() ? a.weight_bytes() > b.weight_bytes()
                                                    : a.entry < b.entry;
      });
  holders.resize(kept);
}

// The position of the subject in its stack, innermost first; the stack's size if it is unknown
// code.
std::size_t line_in(const std::vector<recording::LocationId>& stack,
                    recording::LocationId subject) {
  return static_cast<std::size_t>(std::ranges::find(stack, subject) - stack.begin());
}

// What PyTorch keeps for one subject.
class TorchParts {
 public:
  explicit TorchParts(std::uint64_t interval_bytes) : interval_bytes_(interval_bytes) {}

  // `inside`: the frames inside of the subject, innermost first.
  void add(const recording::HolderFigures& holder, std::span<const recording::LocationId> inside,
           const recording::Locations& locations) {
    if (inside.empty()) return;
    // A step's own nodes may be sampled by chance, seldom two of them.
    const bool is_certain = !holder.estimated || holder.live_bytes >= 2 * interval_bytes_;
    if (is_certain && locations[inside.front()].function.starts_with(kOnTensors))
      nodes_ += holder.live_count;
    if (holder.estimated) return;
    const auto with = [&](std::string_view beginning) {
      return std::ranges::find_if(inside, [&](recording::LocationId id) {
        return locations[id].function.starts_with(beginning);
      });
    };
    // Not torch.rand and the like: the inputs that the program makes are in no graph yet.
    const auto operation = with(kOperation);
    if (operation != inside.end() && with(kOnTensors) != inside.end())
      results_[locations[*operation].function] += holder.live_count;
  }

  void describe(SubjectFigures& held, std::uint64_t largest_count) const {
    const auto in_step = [&](std::uint64_t count) {
      return count >= kFewest && 2 * count >= largest_count;
    };
    held.has_graph_nodes = in_step(nodes_);
    held.kept_operations = static_cast<std::size_t>(
        std::ranges::count_if(results_, [&](const auto& row) { return in_step(row.second); }));
  }

 private:
  static constexpr std::string_view kOperation = "torch::autograd::THPVariable_";
  // The function of an operation whose arguments are tensors. It creates the nodes of a graph.
  static constexpr std::string_view kOnTensors = "torch::autograd::VariableType::";
  static constexpr std::uint64_t kFewest = 4;  // fewer may be those of the current step

  std::uint64_t interval_bytes_;
  std::uint64_t nodes_ = 0;
  std::unordered_map<std::string, std::uint64_t> results_;  // blocks, by operation
};

// Sums the holders by subject.
class Subjects {
 public:
  Subjects(const bundles::Source& source, const std::vector<recording::HolderFigures>& holders,
           const Leaks& leaks) {
    recording::Stacks stacks{*source.recording, *source.locations};
    std::vector<recording::StackId> stack_of;
    stack_of.reserve(holders.size());
    for (const recording::HolderFigures& holder : holders)
      stack_of.push_back(stacks.of_node(holder.node));
    const std::vector<recording::LocationId> subjects =
        recording::subjects_of(stacks, *source.locations);
    for (std::size_t i = 0; i < holders.size(); ++i)
      add(subjects[stack_of[i]], holders[i], stacks.locations(stack_of[i]), source);
    for (std::size_t i = 0; i < held_.size(); ++i) torch_[i].describe(held_[i], largest_counts_[i]);
    add_growth(leaks);
    for (std::size_t i = 0; i < held_.size(); ++i) weigh_growth(held_[i], live_bytes_[i]);
  }

  std::vector<SubjectFigures> take() {
    std::ranges::sort(held_, std::ranges::greater{}, &SubjectFigures::bytes);
    return std::move(held_);
  }

 private:
  void add(recording::LocationId subject, const recording::HolderFigures& holder,
           const std::vector<recording::LocationId>& stack, const bundles::Source& source) {
    const auto [at, is_new] = number_of_.try_emplace(subject, held_.size());
    if (is_new) {
      held_.push_back(first_of(subject, holder, stack, *source.locations));
      torch_.emplace_back(source.recording->header().interval_bytes);
      largest_counts_.push_back(holder.live_count);
      live_bytes_.push_back(0);
    }
    live_bytes_[at->second] += holder.live_bytes;
    SubjectFigures& held = held_[at->second];
    held.bytes += holder.weight_bytes();
    held.count += holder.live_count;
    held.ever_bytes += holder.total_bytes;
    torch_[at->second].add(holder, std::span{stack}.first(line_in(stack, subject)),
                           *source.locations);
  }

  static SubjectFigures first_of(recording::LocationId subject,
                                 const recording::HolderFigures& holder,
                                 const std::vector<recording::LocationId>& stack,
                                 const recording::Locations& locations) {
    SubjectFigures held;
    held.subject = subject != 0 ? recording::location_text(locations[subject], locations, kColumns)
                                : "unknown code";
    held.stack = copied(stack, locations);
    held.line = line_in(stack, subject);
    held.holder = holder.entry;
    held.space = holder.space;
    return held;
  }

  // A subject may leak by several stacks, in several spaces. What was retained in the shorter of
  // two times was retained in the longer, too. The rest is that of the largest growth.
  void add_growth(const Leaks& leaks) {
    for (const Leak& leak : leaks.leaks) {
      const auto at = number_of_.find(leak.subject);
      if (at == number_of_.end()) continue;
      std::optional<Growth>& growth = held_[at->second].growth;
      if (!growth) {
        growth = leak.growth;
        continue;
      }
      Growth sum = growth->bytes < leak.growth.bytes ? leak.growth : *growth;
      sum.bytes = growth->bytes + leak.growth.bytes;
      sum.bytes_per_second = growth->bytes_per_second + leak.growth.bytes_per_second;
      sum.window_seconds = std::max(growth->window_seconds, leak.growth.window_seconds);
      growth = sum;
    }
  }

  // Of what it has in memory, the same part has grown lately as of its live bytes.
  static void weigh_growth(SubjectFigures& held, std::uint64_t live_bytes) {
    if (!held.growth || held.bytes >= live_bytes) return;
    const double part = static_cast<double>(held.bytes) / static_cast<double>(live_bytes);
    held.growth->bytes *= part;
    held.growth->bytes_per_second *= part;
  }

  std::vector<SubjectFigures> held_;
  std::vector<TorchParts> torch_;              // of each in held_
  std::vector<std::uint64_t> largest_counts_;  // likewise: blocks of its largest holder
  std::vector<std::uint64_t> live_bytes_;      // likewise, where `bytes` are those in memory
  std::unordered_map<recording::LocationId, std::size_t> number_of_;  // by subject
};

std::size_t threads_of(const recording::Recording& recording) {
  std::size_t threads = 0;
  for (const auto& lane : session::entries<session::Lane>(recording.view(), TableId::lanes))
    if (lane.owner_tid != 0) ++threads;
  return threads;
}

LimitFacts limit_facts(const recording::Recording& recording, const session::EndLevels& levels,
                       const session::CgroupAccount& account, const verdict::Verdict& verdict) {
  const session::Header& header = recording.header();
  LimitFacts facts;
  facts.kind = verdict.limit.kind;
  facts.limit = verdict.limit.bytes;
  facts.used = verdict.limit.used_bytes;
  if (facts.kind != LimitKind::soft)  // which counts what is requested, not what is resident
    facts.peak_bytes = std::max<std::uint64_t>(
        {levels.resident_peak_bytes, header.health.rss_bytes, recording.weighed_bytes()});
  facts.other_bytes = account.unrecorded_bytes;
  facts.ram_bytes = header.ram_bytes;
  facts.swap_bytes = header.swap_bytes;
  facts.shared_total_bytes = header.shared.total_bytes;
  facts.shared_needed_bytes = header.shared.needed_bytes;
  facts.program = text::base_name(recording.text(program_of(header)));
  const std::uint64_t own_reading = header.health.cgroup_limit_bytes;
  const std::uint64_t cgroup_bytes =
      levels.cgroup_limit_bytes != 0 ? levels.cgroup_limit_bytes : own_reading;
  facts.cgroup_bytes = cgroup_bytes != session::kUnlimited ? cgroup_bytes : 0;
  facts.heap = heap_limit_of(facts.program, recording.arguments());
  if (facts.heap.bytes == 0) facts.heap.bytes = php_limit_in(header.runtime_limit.evidence);
  return facts;
}

// A limit that the allocator in use takes from the environment, which nothing in /proc shows.
std::string allocator_limit_of(const bundles::Source& source) {
  struct Variable {
    std::string_view allocator, name;  // "0" sets no limit
  };
  constexpr Variable kVariables[] = {
      {"tcmalloc", "TCMALLOC_HEAP_LIMIT_MB"},
      {"mimalloc", "MIMALLOC_LIMIT_OS_ALLOC"},
      {"mimalloc", "MIMALLOC_DISALLOW_OS_ALLOC"},  // the same since 2.1
  };
  if (source.bundle.empty()) return {};
  const Json variables = bundles::variables_of(source.bundle);
  const std::string allocator = recording::allocator_of(*source.recording);
  for (const Variable& variable : kVariables) {
    const auto value = text_of(variables, variable.name);
    if (value && *value != "0" && allocator == variable.allocator)
      return std::string{variable.name} + "=" + printable(*value);
  }
  return {};
}

void add_request_stack(AdviceFacts& facts, const bundles::Source& source, std::uint32_t node) {
  const std::vector<recording::LocationId> ids = source.locations->of_stack(node);
  const recording::Locations& locations = *source.locations;
  facts.request_stack = copied(ids, locations);
  const auto subject =  // the innermost of the most relevant, as in subjects_of()
      std::ranges::max_element(ids, [&](recording::LocationId a, recording::LocationId b) {
        return recording::relevance_of(locations[a], locations) <
               recording::relevance_of(locations[b], locations);
      });
  facts.request_line = static_cast<std::size_t>(subject - ids.begin());
}

}  // namespace

AdviceFacts advice_facts(const bundles::Source& source) {
  recording::Stacks stacks{*source.recording, *source.locations};
  return advice_facts(source, leaks_of(*source.recording, stacks, *source.locations));
}

AdviceFacts advice_facts(const bundles::Source& source, const Leaks& leaks) {
  const recording::Recording& recording = *source.recording;
  AdviceFacts facts;
  std::vector<recording::HolderFigures> holders = living_holders(recording);
  for (const recording::HolderFigures& holder : holders) facts.all_bytes += holder.weight_bytes();
  keep_largest(holders);
  facts.held = Subjects{source, holders, leaks}.take();
  const bundles::FailureDetails failed{source};
  if (failed.exists) {
    facts.request_bytes = failed.failure.bytes;
    add_request_stack(facts, source, failed.failure.node);
  }
  const verdict::Verdict verdict = source.verdict();
  facts.verdict = verdict.code;
  if (verdict.limit.is_in_bytes()) facts.limit_bytes = verdict.limit.bytes;
  const bool examined = source.ending && source.ending->killed;
  facts.kernel_line = static_cast<session::KernelLine>(
      (examined ? source.ending->evidence.death : recording.header().death).kernel_line_kind);
  facts.limit = limit_facts(
      recording, examined ? source.ending->evidence.levels : recording.header().end_levels,
      examined ? source.ending->evidence.account : recording.header().account, verdict);
  if (facts.verdict == VerdictCode::allocation_failed)
    facts.limit.allocator_limit = allocator_limit_of(source);
  if (recording.weight() == recording::Weight::resident) {
    facts.limit.unmapped_shared_bytes = sections::unmapped_shared_bytes(source);
    facts.unheld_heap_bytes = sections::heap_without_holder_bytes(recording);
  }
  facts.devices = recording::devices_of(recording, source.failure());
  facts.host_bytes = recording.host_bytes();
  facts.rss_bytes = recording.header().health.rss_bytes;
  facts.threads = threads_of(recording);
  facts.is_python = recording.header().python.version_hex != 0;
  return facts;
}

std::vector<Hint> advice_for(const bundles::Source& source) {
  if (!source.is_job()) return advice_of(advice_facts(source));
  const auto first = number_of(member(source.ranks, "first"), "rank");
  if (!first) return {};
  try {
    const auto bundle = bundles::bundle_of_rank(source, static_cast<std::uint32_t>(*first));
    return advice_of(advice_facts(bundles::open_source(bundle, source.cache)));
  } catch (const Error&) {
    return {};  // the rank's bundle is gone or damaged
  }
}

}  // namespace oomrec::tools::findings
