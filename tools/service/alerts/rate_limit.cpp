#include "tools/service/alerts/rate_limit.h"

#include <utility>

namespace oomrec::tools::service {

void RateLimit::add(Incident incident) {
  std::optional<Alert>& alert = waiting_[incident.rule].alert;
  if (!alert) {
    alert = Alert{std::move(incident), {}};
  } else if (alert->also.size() < kMostAlso) {
    alert->also.push_back(std::move(incident));
  } else {
    alert->left_out += 1;
  }
}

std::vector<Alert> RateLimit::take_due(Clock::time_point now) {
  std::vector<Alert> due;
  for (auto& [rule, waiting] : waiting_) {
    if (!waiting.alert || now < waiting.due()) continue;
    due.push_back(std::move(*std::exchange(waiting.alert, std::nullopt)));
    waiting.last = now;
  }
  return due;
}

std::optional<RateLimit::Clock::time_point> RateLimit::due() const {
  std::optional<Clock::time_point> at;
  for (const auto& [rule, waiting] : waiting_)
    if (waiting.alert && (!at || waiting.due() < *at)) at = waiting.due();
  return at;
}

}  // namespace oomrec::tools::service
