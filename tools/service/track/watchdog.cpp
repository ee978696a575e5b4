#include "tools/service/track/watchdog.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/findings/advice/advice.h"

namespace oomrec::tools::service {
namespace {

constexpr std::size_t kMostHolders = 3;
constexpr std::size_t kMostHints = 3;

std::string advice_text(const findings::AdviceFacts& facts,
                        const std::vector<findings::Hint>& hints) {
  std::string page = "largest holders:";
  for (std::size_t i = 0; i < std::min(kMostHolders, facts.held.size()); ++i)
    page += fmt::format("\n  {:>10}  {}", size_text(facts.held[i].bytes),
                        clip(facts.held[i].subject, 84));
  for (std::size_t i = 0; i < std::min(kMostHints, hints.size()); ++i)
    page += fmt::format("\n  → {}", wrap(hints[i].text, 96, 4));
  return page;
}

}  // namespace

std::string Watchdog::check(const processes::MemorySample& sample,
                            const processes::Observed& observed) {
  const auto now = std::chrono::steady_clock::now();
  const bool is_recent = last_ != std::chrono::steady_clock::time_point{} && now - last_ < kBetween;
  if (sample.bound.percent() < kFromPercent || is_recent || observed.recording() == nullptr)
    return {};
  last_ = now;
  try {
    const bundles::Source source = bundles::open_source(observed.recording()->path().string(),
                                                        recording::CacheDirectory::of_user());
    const findings::AdviceFacts facts = findings::advice_facts(source);
    return advice_text(facts, findings::advice_of(facts));
  } catch (const Error&) {
    return {};  // it has just ended
  }
}

}  // namespace oomrec::tools::service
