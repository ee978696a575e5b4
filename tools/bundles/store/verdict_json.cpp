#include "tools/bundles/store/verdict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::bundles {
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
    const std::string_view name = text::error_name(space, failure.error);
    const bool unnamed = name.empty() && failure.error != 0;
    return unnamed ? fmt::format("the driver's result {}", failure.error) : std::string{name};
  }
  const char* name = strerrorname_np(failure.error);
  return name != nullptr ? name : std::to_string(failure.error);
}

Json verdict_json(const verdict::Verdict& verdict) {
  Json evidence = Json::array();
  for (unsigned i = 0; i < std::min(verdict.evidence_count, verdict::kMaxEvidence); ++i) {
    evidence.push_back(verdict.evidence[i]);
  }
  return {{"code", name_of(verdict.code)}, {"summary", verdict.summary}, {"evidence", evidence}};
}

verdict::Verdict stored_verdict(const Json& metadata) {
  verdict::Verdict verdict;
  const Json& told = member(metadata, "verdict");
  const auto word_in = [](const Json& json, std::string_view key, const auto& names) {
    const auto at = std::find(names.begin(), names.end(), text_of(json, key).value_or(""));
    return static_cast<std::size_t>(at - names.begin());
  };
  if (const std::size_t at = word_in(told, "code", kVerdictNames); at < kVerdictNames.size())
    verdict.code = static_cast<VerdictCode>(at);
  text::Text{verdict.summary}.add(text_of(told, "summary").value_or(""));
  if (const Json& lines = member(told, "evidence"); lines.is_array()) {
    for (const Json& line : lines)
      if (line.is_string() && verdict.evidence_count < verdict::kMaxEvidence)
        text::Text{verdict.evidence[verdict.evidence_count++]}.add(line.get<std::string>());
  }
  const Json& limit = member(metadata, "limit");
  if (const std::size_t at = word_in(limit, "kind", kLimitKindNames); at < kLimitKindNames.size())
    verdict.limit = static_cast<LimitKind>(at);
  verdict.limit_bytes = number_of(limit, "bytes").value_or(0);
  verdict.limit_used_bytes = number_of(limit, "used").value_or(0);
  return verdict;
}

Json limit_json(const verdict::Verdict& verdict) {
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
      {"device", text_or_null(recording::device_label(*source.recording, failure.device.device))},
      {"error", text_or_null(refused.error())},
      {"repeats", source.repeats()},
      {"thread",
       {{"tid", refused.thread.tid != 0 ? Json(refused.thread.tid) : Json(nullptr)},
        {"name", text_or_null(printable(refused.thread.name))}}},
      {"stack", recording::stack_json(source.places->of_stack(failure.node), *source.places)},
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
