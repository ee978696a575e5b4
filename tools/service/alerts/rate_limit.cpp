#include "tools/service/alerts/rate_limit.h"

#include <utility>

namespace oomrec::tools::service {

bool Hysteresis::falls(const std::string& what, double ratio, double threshold) {
  if (ratio < threshold) return below_.insert(what).second;
  if (ratio >= threshold + kFallBack) below_.erase(what);
  return false;
}

void Pace::add(Concern trouble) {
  std::optional<Alert>& alert = waiting_[trouble.rule].alert;
  if (!alert) {
    alert = Alert{std::move(trouble), {}};
  } else if (alert->also.size() < kMostAlso) {
    alert->also.push_back(std::move(trouble));
  } else {
    alert->left_out += 1;
  }
}

std::vector<Alert> Pace::take(Clock::time_point now) {
  std::vector<Alert> due;
  for (auto& [rule, waiting] : waiting_) {
    if (!waiting.alert || now < waiting.due()) continue;
    due.push_back(std::move(*std::exchange(waiting.alert, std::nullopt)));
    waiting.last = now;
  }
  return due;
}

std::optional<Pace::Clock::time_point> Pace::due() const {
  std::optional<Clock::time_point> at;
  for (const auto& [rule, waiting] : waiting_)
    if (waiting.alert && (!at || waiting.due() < *at)) at = waiting.due();
  return at;
}

}  // namespace oomrec::tools::service
