#include "tools/bundles/store/failed_request.h"

#include <fmt/format.h>

#include <cstring>

#include "common/facts/request.h"
#include "common/text/text.h"
#include "tools/base/json_tree.h"
#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::bundles {
namespace {

using session::TableId;

struct Stack {
  Json frames;
  void write(JsonTree& json) const { json.value(frames); }
};

}  // namespace

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
  return fact_json(facts::ShownRequest<Stack>{
      {failure,
       details.thread,
       error,
       source.repeats(),
       source.aftershocks(),
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
