#include "tools/print/happened.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/text/text.h"
#include "tools/analysis/devices.h"
#include "tools/print/stack.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

using session::TableId;

// A field of the recording that holds text, as far as it goes.
template <std::size_t N>
Json field_json(const char (&field)[N]) {
  return text_or_null(printable({field, strnlen(field, N)}));
}

}  // namespace

Refused::Refused(const Source& source) {
  const session::View& view = source.recording->view();
  const std::uint32_t index = source.failure();
  there = index != 0 && view.read(TableId::failures, index, failure);
  if (there) view.read(TableId::threads, failure.thread, thread);
  thread.name[sizeof thread.name - 1] = '\0';
}

std::string Refused::error() const {
  const auto space = static_cast<Space>(failure.space);
  if (is_device_space(space)) {
    const std::string_view name = bundle::error_name(space, failure.error);
    const bool unnamed = name.empty() && failure.error != 0;
    return unnamed ? fmt::format("the driver's result {}", failure.error) : std::string{name};
  }
  const char* name = strerrorname_np(failure.error);
  return name != nullptr ? name : std::to_string(failure.error);
}

Json verdict_json(const bundle::Verdict& verdict) {
  Json evidence = Json::array();
  for (unsigned i = 0; i < std::min(verdict.evidence_count, bundle::kMaxEvidence); ++i) {
    evidence.push_back(verdict.evidence[i]);
  }
  return {{"code", name_of(verdict.code)}, {"summary", verdict.summary}, {"evidence", evidence}};
}

Json limit_json(const bundle::Verdict& verdict) {
  const bool none = verdict.limit == LimitKind::none || counts_things(verdict.limit);
  return {{"kind", name_of(verdict.limit)},
          {"bytes", none ? Json(nullptr) : Json(verdict.limit_bytes)},
          {"used", none ? Json(nullptr) : Json(verdict.limit_used_bytes)}};
}

Json request_json(const Source& source) {
  const Refused refused{source};
  if (!refused.there) return nullptr;
  const session::Failure& failure = refused.failure;
  return {
      {"api", name_of(static_cast<Api>(failure.api))},
      {"size", failure.bytes},
      {"space", name_of(static_cast<Space>(failure.space))},
      {"device", text_or_null(device_label(*source.recording, failure.device.device))},
      {"error", text_or_null(refused.error())},
      {"repeats", source.repeats()},
      {"thread",
       {{"tid", refused.thread.tid != 0 ? Json(refused.thread.tid) : Json(nullptr)},
        {"name", text_or_null(printable(refused.thread.name))}}},
      {"stack", stack_json(source.places->of_stack(failure.node), *source.places)},
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

}  // namespace oomrec::tools
