// metadata.json: what happened: outcome, verdict, crash, limit, request.
//
// complete() must find "outcome", "verdict", "crash", "limit", "limit_reserve" and "cgroup_account"
// in this order near the front, and the request's "repeats" and "aftershocks" in the first 64 KiB.
// The program's own texts come last, because they may be long.
#include <algorithm>

#include "common/bundle/files.h"
#include "common/facts/account.h"
#include "common/facts/writer.h"
#include "common/text/device_text.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

using session::Failure;
using session::TableId;

session::Thread thread_of(const session::View& view, std::uint64_t index) noexcept {
  session::Thread thread{};
  view.read(TableId::threads, index, thread);
  return thread;
}

struct Stack {
  InHook hook;
  const session::View& view;
  std::uint32_t node;
  text::ExportedName names;
  void write(text::JsonWriter& json) const noexcept {
    text::write_stack(hook, json, view, node, names);
  }
};

void write_request(InHook hook, text::JsonWriter& json, const Job& job) noexcept {
  Failure failure{};
  session::Device device;
  const bool has_failed =
      job.cause.failure != 0 && job.view.read(TableId::failures, job.cause.failure, failure);
  const bool has_device = text::read_device(job.view, failure.device.device, device);
  const facts::StoredRequest<Stack> request{
      {failure,
       thread_of(job.view, failure.thread),
       text::error_name(static_cast<Space>(failure.space), failure.error),
       failure.repeats,
       aftershocks_of(job.view, job.cause.failure),
       {hook, job.view, failure.node, job.cause.exported_name}},
      has_device,
      device};
  facts::write_section(json, has_failed ? &request : nullptr);
}

}  // namespace

facts::Crash<CrashFrames> crash_of(InHook hook, const session::View& view,
                                   text::ExportedName names) noexcept {
  const session::Crash& crash = view.header().crash;
  const std::uint32_t signal = crash.signal.load(std::memory_order_acquire);
  const std::uint32_t count = std::min(crash.frame_count, session::kCrashFrames);
  return {signal,
          text::signal_name(signal),
          session::has_address(crash),
          crash.address,
          crash.sender_pid,
          thread_of(view, crash.thread),
          {hook, view, {crash.frames, count}, names}};
}

std::string_view outcome_text(OutcomeKind kind, std::int32_t value,
                              std::span<char> buffer) noexcept {
  text::Text text{buffer.data(), buffer.size()};
  text.add(name_of(kind));
  if (kind == OutcomeKind::exited || kind == OutcomeKind::signal)
    text.add(' ').signed_number(value);
  return text.view();
}

namespace {

// The program's words, else the label that it was at work under.
void write_context(text::JsonWriter& json, const Job& job) noexcept {
  const Cause& cause = job.cause;
  if (cause.texts != nullptr && cause.texts->context.data() != nullptr)
    return json.string(cause.texts->context);
  json.string_or_null(cause.reason.empty() ? cause.label : cause.reason);
}

}  // namespace

bool write_metadata(InHook hook, Job& job) noexcept {
  char outcome[32];
  JsonFile file{hook, job, "metadata.json"};
  text::JsonWriter& json = file.json();
  json.begin_object();
  json.key("schema_version").number(2);
  json.key("reason").string(name_of(job.cause.trigger));
  json.key("outcome").string(outcome_text(job.cause.outcome, job.cause.outcome_value, outcome));
  facts::write_section(json, job.work.verdict);
  facts::write_section(json, crash_of(hook, job.view, job.cause.exported_name));
  facts::write_section(json, job.work.verdict.limit);
  facts::write_section(json, session::limit_reserve_of(job.view.header()));
  facts::write_section(json, job.cause.end != nullptr ? &job.cause.end->account : nullptr);
  write_request(hook, json, job);
  json.key("failure");
  job.cause.failure == 0 ? json.null() : json.number(job.cause.failure);
  facts::write_section(json, job.cause.child);
  json.key("backend").string(backend_of(job));
  json.key("captured_event_count").number(job.event_count);
  const text::ExceptionTexts none;
  const text::ExceptionTexts& texts = job.cause.texts != nullptr ? *job.cause.texts : none;
  json.key("context");
  write_context(json, job);
  for (const TextKey& text : kTextKeys) {
    json.key(text.key);
    text::write_text(json, texts.*text.text);
  }
  json.key("custom_metadata");
  text::write_custom_metadata(json, texts.metadata);
  json.end_object();
  return file.done();
}

}  // namespace oomrec::bundle
