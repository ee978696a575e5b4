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

// Writes "thread" and its value: entry `index` of `threads`.
void write_thread(text::JsonWriter& json, const session::View& view, std::uint64_t index) noexcept {
  session::Thread thread{};
  view.read(TableId::threads, index, thread);
  thread.name[sizeof thread.name - 1] = '\0';
  json.key("thread").begin_object(text::JsonLayout::one_line);
  json.key("tid");
  thread.tid == 0 ? json.null() : json.signed_number(thread.tid);
  json.key("name").string_or_null(thread.name);
  json.end_object();
}

void write_request(InHook hook, text::JsonWriter& json, const Job& job) noexcept {
  Failure failure{};
  if (job.cause.failure == 0 || !job.view.read(TableId::failures, job.cause.failure, failure))
    return json.null();
  json.begin_object();
  json.key("api").string(name_of(static_cast<Api>(failure.api)));
  json.key("size").number(failure.bytes);
  json.key("space").string(name_of(static_cast<Space>(failure.space)));
  json.key("error").string_or_null(
      text::error_name(static_cast<Space>(failure.space), failure.error));
  json.key("repeats").number(failure.repeats.load(std::memory_order_relaxed));
  facts::write_section(json, aftershocks_of(job.view, job.cause.failure));
  write_thread(json, job.view, failure.thread);
  json.key("stack");
  text::write_stack(hook, json, job.view, failure.node, job.cause.exported_name);
  session::Device device;
  const bool known = text::read_device(job.view, failure.device.device, device);
  json.key("device");
  known ? text::write_device(json, device) : json.null();
  json.key("device_evidence");
  known ? text::write_device_evidence(json, failure.device) : json.null();
  json.end_object();
}

void write_child(text::JsonWriter& json, const session::ChildDeath* child) noexcept {
  if (child == nullptr) return json.null();
  json.begin_object();
  json.key("pid").signed_number(child->pid);
  json.key("program").string_or_null(child->program);
  json.key("verdict").string(name_of(static_cast<VerdictCode>(child->verdict)));
  json.key("held_bytes").number(child->held_bytes);
  json.key("largest_bytes").number(child->largest_bytes);
  json.key("where").string_or_null(child->where);
  json.key("bundle").string_or_null(child->bundle);
  json.end_object();
}

}  // namespace

void write_crash(InHook hook, text::JsonWriter& json, const session::View& view,
                 text::ExportedName names) noexcept {
  const session::Crash& crash = view.header().crash;
  const std::uint32_t signal = crash.signal.load(std::memory_order_acquire);
  if (signal == 0) return json.null();
  json.begin_object();
  json.key("signal").number(signal);
  json.key("name").string_or_null(text::signal_name(signal));
  json.key("address");
  session::has_address(crash) ? json.number(crash.address) : json.null();
  json.key("sender_pid");
  crash.sender_pid == 0 ? json.null() : json.signed_number(crash.sender_pid);
  write_thread(json, view, crash.thread);
  json.key("stack");
  const std::uint32_t count = std::min(crash.frame_count, session::kCrashFrames);
  text::write_frames(hook, json, view, {crash.frames, count}, names);
  json.end_object();
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
  json.key("crash");
  write_crash(hook, json, job.view, job.cause.exported_name);
  facts::write_section(json, job.work.verdict.limit);
  facts::write_section(json, session::limit_reserve_of(job.view.header()));
  constexpr session::CgroupAccount kNone{};
  facts::write_section(json, job.cause.end == nullptr ? kNone : job.cause.end->account);
  json.key("request");
  write_request(hook, json, job);
  json.key("failure");
  job.cause.failure == 0 ? json.null() : json.number(job.cause.failure);
  json.key("child");
  write_child(json, job.cause.child);
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
