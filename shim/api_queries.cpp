// The C API from version 3 on: queries, exceptions and notifications.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "common/limits/health.h"
#include "common/text/exception_texts.h"
#include "include/oomrec.h"
#include "recorder/events/block_lookup.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/exceptions.h"
#include "recorder/failures/failures.h"
#include "recorder/limits/thresholds.h"
#include "recorder/limits/usage.h"
#include "recorder/state/notifications.h"
#include "recorder/state/state.h"
#include "shim/api.h"
#include "shim/interpose/export.h"

namespace {

using oomrec::InHook;
using oomrec::shim::as_recorder;
using oomrec::text::ExceptionTexts;
namespace recorder = oomrec::recorder;

template <std::size_t N>
void copy_name(char (&to)[N], std::string_view from) noexcept {
  const std::size_t bytes = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), bytes);
  to[bytes] = '\0';
}

// At most `max_bytes` of the caller's text, and one more to show that it was longer.
std::string_view text_of(const char* text, std::size_t max_bytes) noexcept {
  if (text == nullptr) return {};
  return {text, strnlen(text, max_bytes + 1)};
}

// The caller's struct, which contains its size: nothing is written beyond it.
class CallerStruct {
 public:
  template <class Struct>
  explicit CallerStruct(Struct* to) noexcept
      : to_(reinterpret_cast<char*>(to)), bytes_(std::min<std::size_t>(to->size, sizeof *to)) {}

  // Writes the bytes at `offset` of the struct.
  void put(std::size_t offset, const void* from, std::size_t bytes) const noexcept {
    if (offset < bytes_) std::memcpy(to_ + offset, from, std::min(bytes, bytes_ - offset));
  }

 private:
  char* to_;
  std::size_t bytes_;
};

// Fills the caller's struct, except its size.
template <class Struct>
void fill(Struct* to, const Struct& full) noexcept {
  constexpr std::size_t kSize = sizeof full.size;
  CallerStruct{to}.put(kSize, reinterpret_cast<const char*>(&full) + kSize, sizeof full - kSize);
}

std::string_view kind_of(const oomrec::session::Device& device) noexcept {
  return device.vendor == static_cast<std::uint8_t>(oomrec::session::Vendor::cuda) ? "cuda" : "hip";
}

// "GPU-01234567-89ab-…", or nothing.
void write_uuid(const oomrec::session::Device& device, char (&to)[48]) noexcept {
  std::size_t used = 0;
  bool known = false;
  const auto add = [&](char c) noexcept { to[used++] = c; };
  for (const char c : std::string_view{"GPU"}) add(c);
  for (std::size_t i = 0; i < sizeof device.uuid; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) add('-');
    add("0123456789abcdef"[device.uuid[i] >> 4]);
    add("0123456789abcdef"[device.uuid[i] & 15]);
    known |= device.uuid[i] != 0;
  }
  to[known ? used : 0] = '\0';
}

oomrec_device_usage device_usage(const oomrec::session::Device& device) noexcept {
  oomrec_device_usage out{};
  copy_name(out.kind, kind_of(device));
  out.ordinal = device.ordinal;
  write_uuid(device, out.uuid);
  copy_name(out.name, {device.name, strnlen(device.name, sizeof device.name)});
  out.total_bytes = device.total_bytes;
  out.used_bytes = device.used_bytes();
  out.free_bytes = out.total_bytes > out.used_bytes ? out.total_bytes - out.used_bytes : 0;
  out.counted_bytes = device.counted_bytes();
  out.limit_bytes = device.limit_bytes;
  return out;
}

oomrec_space_usage space_usage(const recorder::SpaceUsage& from) noexcept {
  oomrec_space_usage to{};
  copy_name(to.name, name_of(from.space));
  to.live_bytes = from.live_bytes;
  to.peak_bytes = from.peak_bytes;
  to.allocated_bytes = from.allocated_bytes;
  to.live_count = from.live_count;
  return to;
}

// Written part by part: the whole struct is too large for a hook's stack, and a lock for a static
// one would outlive a fork.
bool fill_usage(InHook hook, oomrec_usage_info* usage) noexcept {
  using Info = oomrec_usage_info;
  constexpr std::uint32_t kSpaces = sizeof(Info::spaces) / sizeof(oomrec_space_usage);
  constexpr std::uint32_t kDevices = sizeof(Info::devices) / sizeof(oomrec_device_usage);
  static_assert(oomrec::kSpaceCount <= kSpaces);
  recorder::Usage seen;
  if (!recorder::read_usage(hook, seen)) return false;
  const CallerStruct out{usage};
  const auto put = [&](std::size_t offset, const auto& value) noexcept {
    out.put(offset, &value, sizeof value);
  };
  put(offsetof(Info, live_bytes), seen.live_bytes);
  put(offsetof(Info, peak_bytes), seen.peak_bytes);
  put(offsetof(Info, rss_bytes), seen.rss_bytes);
  const std::uint64_t limit = seen.limit.limit_bytes;
  const std::uint64_t used = limit != 0 ? seen.limit.used_bytes : 0;
  char kind[sizeof(Info::limit_kind)] = {};
  if (limit != 0) copy_name(kind, name_of(seen.limit.kind));
  put(offsetof(Info, limit_bytes), limit);
  put(offsetof(Info, used_of_limit_bytes), used);
  put(offsetof(Info, headroom_bytes), limit - std::min(limit, used));
  put(offsetof(Info, limit_kind), kind);

  for (std::uint32_t at = 0; at < kSpaces; ++at)
    put(offsetof(Info, spaces) + at * sizeof(oomrec_space_usage),
        at < seen.spaces ? space_usage(seen.space[at]) : oomrec_space_usage{});
  auto& devices = oomrec::session::g_session.devices;
  const std::uint32_t known = std::max(devices.size(), 1u) - 1;
  for (std::uint32_t at = 0; at < kDevices; ++at)
    put(offsetof(Info, devices) + at * sizeof(oomrec_device_usage),
        at < known ? device_usage(devices.at(at + 1)) : oomrec_device_usage{});
  put(offsetof(Info, space_count), seen.spaces);
  put(offsetof(Info, device_count), std::min(known, kDevices));
  put(offsetof(Info, reserved), std::uint32_t{0});
  return true;
}

// Copies a bundle's path to the caller. Returns its length, or 0 if it does not fit.
template <class Find>
uint32_t copy_path(char* path, uint32_t bytes, Find find) noexcept {
  if (path == nullptr || bytes == 0) return 0;
  path[0] = '\0';
  constexpr std::size_t kMaxPathBytes = 4096 + 128;
  const std::size_t length = find(std::span{path, std::min<std::size_t>(bytes, kMaxPathBytes)});
  if (length == 0) path[0] = '\0';
  return static_cast<uint32_t>(length);
}

// Copies the bundle's path and returns the result of oomrec_exception(): 1, 2 or 0.
int report_bundle(InHook hook, const recorder::WrittenBundle& bundle, char* path,
                  uint32_t bytes) noexcept {
  if (bundle.number == 0) return 0;
  copy_path(path, bytes,
            [&](std::span<char> out) { return recorder::bundle_path(hook, bundle.number, out); });
  return bundle.has_texts ? 1 : 2;
}

std::string_view backend_of(const char* name) noexcept {
  const std::string_view given = text_of(name, 8);
  for (const std::string_view known : {"cuda", "rocm"})
    if (given == known) return known;
  return {};
}

ExceptionTexts texts_of(const oomrec_exception_info& info) noexcept {
  ExceptionTexts texts;
  texts.type = text_of(info.type, oomrec::text::kMaxNameBytes);
  texts.module = text_of(info.module, oomrec::text::kMaxNameBytes);
  texts.message = text_of(info.message, oomrec::text::kMaxTextBytes);
  texts.traceback = text_of(info.traceback, oomrec::text::kMaxTextBytes);
  texts.context = text_of(info.context, oomrec::text::kMaxNameBytes);
  texts.metadata = text_of(info.metadata_json, oomrec::text::kMaxTextBytes);
  texts.objects = text_of(info.objects_json, oomrec::text::kMaxObjectsBytes);
  texts.backend = backend_of(info.backend);
  return texts;
}

}  // namespace

extern "C" {

OOMREC_EXPORT int oomrec_usage(oomrec_usage_info* usage) {
  bool known = false;
  if (usage == nullptr) return 0;
  as_recorder([&](InHook hook) { known = fill_usage(hook, usage); });
  return known ? 1 : 0;
}

OOMREC_EXPORT uint32_t oomrec_last_bundle(char* path, uint32_t bytes) {
  uint32_t length = 0;
  if (path != nullptr && bytes != 0) path[0] = '\0';
  as_recorder([&](InHook hook) {
    length = copy_path(path, bytes,
                       [&](std::span<char> out) { return recorder::last_bundle(hook, out); });
  });
  return length;
}

OOMREC_EXPORT uint32_t oomrec_last_failure(void) {
  uint32_t number = 0;
  as_recorder([&](InHook hook) { number = recorder::last_failure_number(hook); });
  return number;
}

OOMREC_EXPORT uint32_t oomrec_failures(void) {
  uint32_t number = 0;
  as_recorder([&](InHook hook) { number = recorder::failure_count(hook); });
  return number;
}

OOMREC_EXPORT uint32_t oomrec_failure_bundle(char* path, uint32_t bytes) {
  uint32_t length = 0;
  if (path != nullptr && bytes != 0) path[0] = '\0';
  as_recorder([&](InHook hook) {
    length = copy_path(path, bytes,
                       [&](std::span<char> out) { return recorder::failure_bundle(hook, out); });
  });
  return length;
}

OOMREC_EXPORT int oomrec_exception(const oomrec_exception_info* exception, char* path,
                                   uint32_t bytes) {
  int result = 0;
  if (path != nullptr && bytes != 0) path[0] = '\0';
  if (exception == nullptr) return 0;
  as_recorder([&](InHook hook) {
    oomrec_exception_info info{};
    std::memcpy(&info, exception, std::min<std::size_t>(exception->size, sizeof info));
    const ExceptionTexts texts = texts_of(info);
    const recorder::WrittenBundle bundle = recorder::report_exception(
        hook, texts, info.since,
        info.any_thread != 0 ? recorder::FailureOf::any_thread : recorder::FailureOf::this_thread);
    result = report_bundle(hook, bundle, path, bytes);
  });
  return result;
}

OOMREC_EXPORT int oomrec_dump_with(const char* reason, const char* metadata_json, char* path,
                                   uint32_t bytes) {
  int result = 0;
  if (path != nullptr && bytes != 0) path[0] = '\0';
  as_recorder([&](InHook hook) {
    ExceptionTexts texts;
    texts.metadata = text_of(metadata_json, oomrec::text::kMaxTextBytes);
    const std::string_view words = text_of(reason, oomrec::text::kMaxNameBytes);
    result = report_bundle(hook, recorder::dump(hook, words, &texts), path, bytes);
  });
  return result;
}

OOMREC_EXPORT int oomrec_notify_at(uint32_t percent, int on) {
  bool done = false;
  as_recorder([&](InHook hook) {
    done = on != 0 ? recorder::add_threshold(hook, percent)
                   : recorder::remove_threshold(hook, percent);
  });
  return done ? 1 : 0;
}

OOMREC_EXPORT int oomrec_block_of(uint64_t address, oomrec_block* block) {
  bool found = false;
  if (block == nullptr) return 0;
  as_recorder([&](InHook hook) {
    const recorder::FoundBlock known = recorder::find_block(hook, address);
    if (known.node == 0) return;
    oomrec_block full{};
    full.node = known.node;
    full.address = known.address;
    full.bytes = known.bytes;
    full.birth_realtime_ns = known.birth_realtime_ns;
    copy_name(full.space, name_of(known.space));
    fill(block, full);
    found = true;
  });
  return found ? 1 : 0;
}

OOMREC_EXPORT uint32_t oomrec_stack_text(uint32_t node, char* text, uint32_t bytes) {
  std::size_t written = 0;
  if (text == nullptr || bytes == 0) return 0;
  text[0] = '\0';
  as_recorder([&](InHook hook) { written = recorder::stack_text(hook, node, {text, bytes}); });
  return static_cast<uint32_t>(written);
}

OOMREC_EXPORT void oomrec_wake(void) {
  as_recorder([](InHook hook) {
    if (recorder::phase() == recorder::Phase::active) recorder::notify_waiters(hook);
  });
}

// It sleeps outside the recorder, so that signal handlers of the program can run.
OOMREC_EXPORT uint32_t oomrec_wait(uint32_t seen, uint32_t timeout_ms) {
  const oomrec::KeepErrno keep;
  return recorder::wait_for_notification(seen, timeout_ms);
}

}  // extern "C"
