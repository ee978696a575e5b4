// metadata.json: what happened (common/facts/metadata.h).
#include <algorithm>
#include <optional>

#include "common/bundle/files.h"
#include "common/facts/account.h"
#include "common/facts/metadata.h"
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

struct CustomMetadata {
  std::string_view json_text;
  void write(text::JsonWriter& json) const noexcept {
    text::write_custom_metadata(json, json_text);
  }
};

struct Metadata : facts::Metadata {
  std::string_view reason, outcome;
  const verdict::Verdict& verdict;
  facts::Crash<CrashFrames> crash;
  session::LimitReserve limit_reserve;
  const session::CgroupAccount* account;
  const facts::StoredRequest<Stack>* request;
  std::optional<std::uint32_t> failure;
  const session::ChildDeath* child;
  std::string_view backend;
  std::uint64_t captured_event_count;
  ProgramText context;
  ExceptionFields exception;
  CustomMetadata custom_metadata;
};

// The program's words, else the label that it was at work under.
ProgramText context_of(const Cause& cause) noexcept {
  if (cause.texts != nullptr && cause.texts->context.data() != nullptr)
    return {cause.texts->context};
  const std::string_view words = cause.reason.empty() ? cause.label : cause.reason;
  return {words.empty() ? std::string_view{} : words};
}

}  // namespace

bool write_metadata(InHook hook, Job& job) noexcept {
  const Cause& cause = job.cause;
  const text::ExceptionTexts none;
  const text::ExceptionTexts& texts = cause.texts != nullptr ? *cause.texts : none;
  Failure failure{};
  session::Device device;
  const bool has_failed =
      cause.failure != 0 && job.view.read(TableId::failures, cause.failure, failure);
  const session::Thread thread = thread_of(job.view, failure.thread);
  const bool has_device = text::read_device(job.view, failure.device.device, device);
  const facts::StoredRequest<Stack> request{
      {failure,
       thread,
       text::error_name(static_cast<Space>(failure.space), failure.error),
       {failure.repeats, aftershocks_of(job.view, cause.failure)},
       {hook, job.view, failure.node, cause.exported_name}},
      has_device,
      device};
  char outcome[32];
  const Metadata metadata{
      {},
      name_of(cause.trigger),
      outcome_text(cause.outcome, cause.outcome_value, outcome),
      job.work.verdict,
      crash_of(hook, job.view, cause.exported_name),
      session::limit_reserve_of(job.view.header()),
      cause.end != nullptr ? &cause.end->account : nullptr,
      has_failed ? &request : nullptr,
      cause.failure != 0 ? std::optional{cause.failure} : std::nullopt,
      cause.child,
      backend_of(job),
      job.event_count,
      context_of(cause),
      exception_fields(texts),
      {texts.metadata},
  };
  JsonFile file{hook, job, "metadata.json"};
  facts::write(file.json(), metadata);
  return file.done();
}

}  // namespace oomrec::bundle
