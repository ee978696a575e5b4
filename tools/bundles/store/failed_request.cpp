#include "tools/bundles/store/failed_request.h"

#include <fmt/format.h>

#include <cstring>

#include "common/text/text.h"
#include "tools/base/json_tree.h"
#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::bundles {
namespace {

using session::TableId;

// A fixed-size text field of the recording, up to its NUL.
template <std::size_t N>
Json field_json(const char (&field)[N]) {
  return text_or_null(printable({field, strnlen(field, N)}));
}

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
  return {
      {"api", name_of(static_cast<Api>(failure.api))},
      {"size", failure.bytes},
      {"space", name_of(static_cast<Space>(failure.space))},
      {"device", text_or_null(recording::device_label(*source.recording, failure.device.device))},
      {"error", text_or_null(details.error())},
      {"repeats", source.repeats()},
      fact_member(source.aftershocks()),
      {"thread",
       {{"tid", details.thread.tid != 0 ? Json(details.thread.tid) : Json(nullptr)},
        {"name", text_or_null(printable(details.thread.name))}}},
      {"stack", recording::stack_json(source.locations->of_stack(failure.node), *source.locations)},
  };
}

Json in_flight_json(const Source& source) {
  const recording::Recording& recording = *source.recording;
  if (recording.in_flight().empty()) return nullptr;
  const recording::RequestInFlight& request = recording.in_flight().front();
  const session::Thread thread = recording.view().thread_at(request.thread, ~std::uint64_t{0} / 2);
  const std::string_view name{thread.name, strnlen(thread.name, sizeof thread.name)};
  return {
      {"api", name_of(request.api)},
      {"size", request.bytes},
      {"space", name_of(request.space)},
      {"thread",
       {{"tid", thread.tid != 0 ? Json(thread.tid) : Json(nullptr)},
        {"name", text_or_null(printable(std::string{name}))}}},
      {"stack", recording::stack_json(source.locations->of_stack(request.node), *source.locations)},
  };
}

Json child_json(const Source& source) {
  const session::ChildDeath& child = source.recording->header().child;
  if (child.pid == 0) return nullptr;
  return {
      {"pid", child.pid},
      {"program", field_json(child.program)},
      {"verdict", name_of(static_cast<VerdictCode>(child.verdict))},
      {"held_bytes", child.held_bytes},
      {"largest_bytes", child.largest_bytes},
      {"where", field_json(child.where)},
      {"bundle", field_json(child.bundle)},
  };
}

}  // namespace oomrec::tools::bundles
