#include "tools/service/fleet/label_values.h"

#include <array>

#include "common/verdict/kinds.h"

namespace oomrec::tools::service {
namespace {

std::vector<Api> apis_of(ApiSet set) {
  std::vector<Api> apis;
  for (std::size_t i = 0; i < kApiCount; ++i) {
    const auto api = static_cast<Api>(i);
    if (set_of(api) == set && function_of(api).has(kFails)) apis.push_back(api);
  }
  if (set == ApiSet::host) apis.push_back(Api::none);
  return apis;
}

}  // namespace

ApiSet set_of(Api api) {
  if (!is_driver_api(api)) return ApiSet::host;
  return api > Api::before_hip ? ApiSet::hip : ApiSet::cuda;
}

const std::vector<Api>& failable_apis(ApiSet set) {
  static const std::array<std::vector<Api>, 3> sets = {apis_of(ApiSet::host), apis_of(ApiSet::cuda),
                                                       apis_of(ApiSet::hip)};
  return sets[static_cast<std::size_t>(set)];
}

std::string_view api_label(Api api) { return api == Api::none ? "other" : name_of(api); }

const std::vector<Trigger>& counted_triggers() {
  static const std::vector<Trigger> triggers = [] {
    std::vector<Trigger> all;
    for (std::size_t i = 1; i < kTriggerNames.size(); ++i) all.push_back(static_cast<Trigger>(i));
    return all;
  }();
  return triggers;
}

const std::vector<VerdictCode>& death_verdicts() {
  static const std::vector<VerdictCode> verdicts = [] {
    std::vector<VerdictCode> all;
    for (std::size_t i = 0; i < kVerdictNames.size(); ++i)
      if (verdict::is_death(static_cast<VerdictCode>(i)))
        all.push_back(static_cast<VerdictCode>(i));
    return all;
  }();
  return verdicts;
}

}  // namespace oomrec::tools::service
