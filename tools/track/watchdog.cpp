#include "tools/track/watchdog.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/advice/advice.h"
#include "tools/bundles/source.h"
#include "tools/error.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr std::size_t kMostHolders = 3;
constexpr std::size_t kMostHints = 3;

std::string told(const AdviceFacts& facts, const std::vector<Hint>& hints) {
  std::string page = "who holds it:";
  for (std::size_t i = 0; i < std::min(kMostHolders, facts.held.size()); ++i)
    page += fmt::format("\n  {:>10}  {}", size_text(facts.held[i].bytes),
                        clip(facts.held[i].subject, 84));
  for (std::size_t i = 0; i < std::min(kMostHints, hints.size()); ++i)
    page += fmt::format("\n  → {}", wrap(hints[i].text, 96, 4));
  return page;
}

}  // namespace

std::string Watchdog::look(const Look& look, const Observed& observed) {
  const auto now = std::chrono::steady_clock::now();
  const bool lately = last_ != std::chrono::steady_clock::time_point{} && now - last_ < kBetween;
  if (look.bound.percent() < kFromPercent || lately || observed.recording() == nullptr) return {};
  last_ = now;
  try {
    const Source source =
        open_source(observed.recording()->path().string(), CacheDirectory::of_user());
    const AdviceFacts facts = advice_facts(source);
    return told(facts, advice_of(facts));
  } catch (const Error&) {
    return {};  // it has just ended
  }
}

}  // namespace oomrec::tools
