#include "tools/service/fleet/label_values.h"

#include <algorithm>
#include <array>

namespace oomrec::tools::service {
namespace {

// Functions of a driver whose name has one of these give something back, or only ask.
constexpr auto kNeverRefused = std::to_array<std::string_view>(
    {"Destroy", "Free", "Release", "Unregister", "Close", "Unbind", "Unmap", "Trim", "Reset",
     "DefaultMemPool", "GetMemPool", "SetMemPool", "GetProcAddress", "EntryPoint"});

bool can_be_refused(Api api) {
  const std::string_view name = kApiNames[static_cast<std::size_t>(api)];  // empty: not in use
  if (is_driver_api(api)) {
    return !name.empty() &&
           std::none_of(kNeverRefused.begin(), kNeverRefused.end(),
                        [&](std::string_view word) { return name.find(word) != name.npos; });
  }
  switch (api) {
    case Api::none:
    case Api::free:
    case Api::operator_delete:
    case Api::munmap:
    case Api::mprotect:
    case Api::shmat:
    case Api::shmdt:
    case Api::inherited:
    case Api::request:
    case Api::reportMemoryUsageToProfiler:
    case Api::oomrec_mark:
      return false;
    default:
      return api < Api::end_of_host;
  }
}

std::vector<Api> apis_of(ApiSet set) {
  std::vector<Api> apis;
  for (std::size_t i = 0; i < kApiCount; ++i) {
    const auto api = static_cast<Api>(i);
    if (set_of(api) == set && can_be_refused(api)) apis.push_back(api);
  }
  if (set == ApiSet::host) apis.push_back(Api::none);
  return apis;
}

}  // namespace

ApiSet set_of(Api api) {
  if (!is_driver_api(api)) return ApiSet::host;
  return api > Api::before_hip ? ApiSet::hip : ApiSet::cuda;
}

const std::vector<Api>& refusable_apis(ApiSet set) {
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

const std::vector<VerdictCode>& verdicts_of_deaths() {
  static const std::vector<VerdictCode> verdicts = [] {
    std::vector<VerdictCode> all;
    for (std::size_t i = 0; i < kVerdictNames.size(); ++i)
      if (is_of_a_death(static_cast<VerdictCode>(i))) all.push_back(static_cast<VerdictCode>(i));
    return all;
  }();
  return verdicts;
}

bool is_of_a_death(VerdictCode verdict) {
  return verdict != VerdictCode::requested && verdict != VerdictCode::near_limit &&
         verdict != VerdictCode::memory_pressure;
}

bool is_for_memory(VerdictCode verdict) {
  switch (verdict) {
    case VerdictCode::requested:
    case VerdictCode::near_limit:
    case VerdictCode::memory_pressure:
    case VerdictCode::exited:
    case VerdictCode::unknown:
    case VerdictCode::crashed:
    case VerdictCode::killed_externally:
    case VerdictCode::thread_creation_failed:
    case VerdictCode::fork_failed:
    case VerdictCode::injected:
      return false;
    default:
      return true;
  }
}

}  // namespace oomrec::tools::service
