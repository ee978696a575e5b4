#include "tools/bundles/store/trigger.h"

#include <fmt/format.h>

#include <cstring>

#include "common/facts/request.h"
#include "common/text/text.h"
#include "common/verdict/verdict.h"
#include "tools/base/fact_reader.h"
#include "tools/base/text.h"
#include "tools/deaths/ending.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::bundles {

using session::State;
using session::TableId;

namespace {

FailedRequest failed_request(std::uint32_t index, const session::Failure& failure) {
  const bool recovered = failure.last_ns.load() >= failure.time_ns + deaths::kFollowsWithinNs;
  const bool by_soft_limit = (failure.flags & session::kFailureByRecorder) != 0;
  return {index, failure.last_ns, failure.bundle != 0 && !recovered,
          by_soft_limit ? Trigger::soft_limit : Trigger::allocation_failed};
}

// The failure that the bundle of this after-shock reports.
std::uint32_t root_of(const session::View& view, std::uint32_t aftershock) {
  session::Failure entry{};
  view.read(TableId::failures, aftershock, entry);
  const std::uint32_t bundle = entry.bundle;
  for (std::uint64_t i = 1; i < view.count(TableId::failures); ++i)
    if (view.read(TableId::failures, i, entry) && entry.bundle == bundle &&
        (entry.flags & session::kFailureAftershock) == 0)
      return static_cast<std::uint32_t>(i);
  return aftershock;
}

bool is_aftershock(const session::View& view, std::uint32_t index) {
  session::Failure entry{};
  return view.read(TableId::failures, index, entry) &&
         (entry.flags & session::kFailureAftershock) != 0;
}

}  // namespace

std::optional<FailedRequest> last_failed_request(const session::View& view) {
  std::optional<FailedRequest> last;
  session::Failure entry{};
  for (std::uint64_t i = 1; i < view.count(TableId::failures); ++i) {
    if (!view.read(TableId::failures, i, entry) || (entry.flags & session::kFailureProbe) != 0)
      continue;
    if (!last || entry.last_ns.load() >= last->last_ns)
      last = failed_request(static_cast<std::uint32_t>(i), entry);
  }
  if (last && is_aftershock(view, last->index)) last->index = root_of(view, last->index);
  return last;
}

State state_of(const session::View& view) { return static_cast<State>(view.header().state.load()); }

int crash_signal(const session::View& view) {
  const auto signal = view.header().crash.signal.load(std::memory_order_acquire);
  return state_of(view) == State::running ? static_cast<int>(signal) : 0;
}

bool crash_is_due(const session::View& view) {
  const session::Crash& crash = view.header().crash;
  return crash_signal(view) != 0 && crash.failure != 0 && verdict::follows_failure(view) &&
         (crash.flags & session::kCrashInBundle) == 0;
}

Trigger trigger_of(const session::View& view) {
  if (crash_is_due(view)) return Trigger::crash;
  const std::optional<FailedRequest> failed = last_failed_request(view);
  if (failed && !failed->in_bundle) return failed->trigger;
  return session::life_of(view) == session::Life::alive ? Trigger::request : Trigger::killed;
}

FailureDetails::FailureDetails(const Source& source) {
  const session::View& view = source.recording->view();
  const std::uint32_t index = source.failure();
  exists = index != 0 && view.read(TableId::failures, index, failure);
  if (exists) view.read(TableId::threads, failure.thread, thread);
  thread.name[sizeof thread.name - 1] = '\0';
}

std::string FailureDetails::error() const {
  const auto space = static_cast<Space>(failure.space);
  if (is_device_space(space)) {
    const std::string_view name = text::error_name(space, failure.error);
    const bool unnamed = name.empty() && failure.error != 0;
    return unnamed ? fmt::format("the driver's result {}", failure.error) : std::string{name};
  }
  const char* name = strerrorname_np(failure.error);
  return name != nullptr ? name : std::to_string(failure.error);
}

Json request_json(const Source& source) {
  const FailureDetails details{source};
  if (!details.exists) return nullptr;
  const session::Failure& failure = details.failure;
  const std::string error = details.error();
  const std::string device = recording::device_label(*source.recording, failure.device.device);
  return fact_json(facts::ShownRequest<JsonPart>{
      {failure,
       details.thread,
       error,
       {source.repeats(), source.aftershocks()},
       {recording::stack_json(source.locations->of_stack(failure.node), *source.locations)}},
      device});
}

Json in_flight_json(const Source& source) {
  const recording::Recording& recording = *source.recording;
  if (recording.in_flight().empty()) return nullptr;
  const recording::RequestInFlight& request = recording.in_flight().front();
  const session::Thread thread = recording.view().thread_at(request.thread, ~std::uint64_t{0} / 2);
  return {
      {"api", name_of(request.api)},
      {"size", request.bytes},
      {"space", name_of(request.space)},
      fact_member(thread),
      {"stack", recording::stack_json(source.locations->of_stack(request.node), *source.locations)},
  };
}

}  // namespace oomrec::tools::bundles
