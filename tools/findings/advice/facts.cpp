#include <algorithm>
#include <unordered_map>

#include "tools/base/error.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/store/verdict_json.h"
#include "tools/findings/advice/advice.h"
#include "tools/findings/leaks/detect.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::findings {
namespace {

using session::TableId;

// So many of the largest holders are looked at: what no one of them shows is nobody's fault.
constexpr std::size_t kMostHolders = 1000;

std::vector<recording::Place> copied(const std::vector<recording::PlaceId>& ids,
                                     const recording::Places& places) {
  std::vector<recording::Place> stack;
  stack.reserve(ids.size());
  for (const recording::PlaceId id : ids) stack.push_back(places[id]);
  return stack;
}

std::vector<recording::HolderFigures> living_holders(const recording::Recording& recording) {
  std::vector<recording::HolderFigures> holders = recording.holders();
  std::erase_if(holders, [](const recording::HolderFigures& holder) {
    return !adds_up(holder.space) || holder.live_bytes == 0;
  });
  return holders;
}

void keep_largest(std::vector<recording::HolderFigures>& holders) {
  const std::size_t kept = std::min(holders.size(), kMostHolders);
  std::partial_sort(
      holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(kept), holders.end(),
      [](const recording::HolderFigures& a, const recording::HolderFigures& b) {
        return a.live_bytes != b.live_bytes ? a.live_bytes > b.live_bytes : a.entry < b.entry;
      });
  holders.resize(kept);
}

// What each subject holds.
class Subjects {
 public:
  Subjects(const bundles::Source& source, const std::vector<recording::HolderFigures>& holders,
           const Leaks& leaks) {
    recording::Stacks stacks{*source.recording, *source.places};
    std::vector<recording::StackId> stack_of;
    stack_of.reserve(holders.size());
    for (const recording::HolderFigures& holder : holders)
      stack_of.push_back(stacks.of_node(holder.node));
    const std::vector<recording::PlaceId> subjects = recording::subjects_of(stacks, *source.places);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const recording::PlaceId subject = subjects[stack_of[i]];
      const auto [at, is_new] = number_of_.try_emplace(subject, held_.size());
      if (is_new)
        held_.push_back(first_of(subject, holders[i], stacks.places(stack_of[i]), *source.places));
      held_[at->second].bytes += holders[i].live_bytes;
      held_[at->second].count += holders[i].live_count;
    }
    add_growth(leaks);
  }

  std::vector<HeldBy> take() {
    std::sort(held_.begin(), held_.end(),
              [](const HeldBy& a, const HeldBy& b) { return a.bytes > b.bytes; });
    return std::move(held_);
  }

 private:
  static HeldBy first_of(recording::PlaceId subject, const recording::HolderFigures& holder,
                         const std::vector<recording::PlaceId>& stack,
                         const recording::Places& places) {
    HeldBy held;
    held.subject = subject != 0 ? recording::place_text(places[subject], places) : "unknown code";
    held.stack = copied(stack, places);
    held.holder = holder.entry;
    held.space = holder.space;
    return held;
  }

  // Of a subject that leaks into several spaces what grew most.
  void add_growth(const Leaks& leaks) {
    for (const Leak& leak : leaks.leaks) {
      const auto at = number_of_.find(leak.subject);
      if (at == number_of_.end()) continue;
      std::optional<Growth>& growth = held_[at->second].growth;
      if (!growth || growth->bytes < leak.growth.bytes) growth = leak.growth;
    }
  }

  std::vector<HeldBy> held_;
  std::unordered_map<recording::PlaceId, std::size_t> number_of_;  // by subject
};

std::size_t threads_of(const recording::Recording& recording) {
  std::size_t threads = 0;
  session::Lane lane{};
  for (std::uint64_t i = 1; i < recording.view().count(TableId::lanes); ++i)
    if (recording.view().read(TableId::lanes, i, lane) && lane.owner_tid != 0) ++threads;
  return threads;
}

}  // namespace

AdviceFacts advice_facts(const bundles::Source& source) {
  recording::Stacks stacks{*source.recording, *source.places};
  return advice_facts(source, leaks_of(*source.recording, stacks, *source.places));
}

AdviceFacts advice_facts(const bundles::Source& source, const Leaks& leaks) {
  const recording::Recording& recording = *source.recording;
  AdviceFacts facts;
  std::vector<recording::HolderFigures> holders = living_holders(recording);
  for (const recording::HolderFigures& holder : holders) facts.all_bytes += holder.live_bytes;
  keep_largest(holders);
  facts.held = Subjects{source, holders, leaks}.take();
  const bundles::Refused refused{source};
  if (refused.there) {
    facts.request_bytes = refused.failure.bytes;
    facts.request_stack = copied(source.places->of_stack(refused.failure.node), *source.places);
  }
  const verdict::Verdict verdict = source.verdict();
  facts.verdict = verdict.code;
  if (verdict.limit != LimitKind::none && !counts_things(verdict.limit))
    facts.limit_bytes = verdict.limit_bytes;
  facts.devices = recording::devices_of(recording, source.failure());
  for (const Space space : recording::spaces_that_add_up())
    if (is_on_host(space)) facts.host_bytes += recording.totals(space).live_bytes;
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
    return {};  // its bundle is gone, or damaged since
  }
}

}  // namespace oomrec::tools::findings
