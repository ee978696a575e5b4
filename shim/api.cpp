// The C API of include/oomrec.h up to version 2, which gives the recorder commands. api_queries.cpp
// has the queries.
#include <string_view>

#include "include/oomrec.h"
#include "recorder/events/marks.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/dump_directory.h"
#include "recorder/limits/thresholds.h"
#include "recorder/recorder.h"
#include "recorder/state/labels.h"
#include "recorder/state/watermark.h"
#include "shim/api.h"
#include "shim/interpose/export.h"

namespace {

using oomrec::shim::as_recorder;

std::string_view text_of(const char* text) noexcept {
  return text != nullptr ? std::string_view{text} : std::string_view{};
}

}  // namespace

extern "C" {

OOMREC_EXPORT int oomrec_api_version(void) { return OOMREC_API_VERSION; }

OOMREC_EXPORT int oomrec_is_active(void) { return oomrec::recorder::is_active() ? 1 : 0; }

OOMREC_EXPORT int oomrec_dump(const char* reason) {
  bool written = false;
  as_recorder([&](oomrec::InHook hook) {
    written = oomrec::recorder::dump(hook, text_of(reason)).number != 0;
  });
  return written ? 1 : 0;
}

OOMREC_EXPORT void oomrec_mark(const char* text) {
  const bool done =
      as_recorder([&](oomrec::InHook hook) { oomrec::recorder::mark(hook, text_of(text)); });
  if (!done) oomrec::recorder::drop_mark();
}

OOMREC_EXPORT void oomrec_set_limit(uint64_t bytes) {
  as_recorder([&](oomrec::InHook hook) { oomrec::recorder::set_soft_limit(hook, bytes); });
}

OOMREC_EXPORT void oomrec_watermark_begin(void) {
  as_recorder([](oomrec::InHook hook) { oomrec::recorder::set_watermark(hook); });
}

OOMREC_EXPORT uint64_t oomrec_watermark(int own_thread) {
  std::uint64_t bytes = 0;
  as_recorder([&](oomrec::InHook hook) {
    bytes =
        oomrec::recorder::watermark(hook, own_thread != 0 ? oomrec::recorder::WatermarkOf::thread
                                                          : oomrec::recorder::WatermarkOf::process);
  });
  return bytes;
}

OOMREC_EXPORT int oomrec_set_dumps(const char* directory, uint32_t max_dumps,
                                   uint64_t max_total_mb) {
  bool done = false;
  as_recorder([&](oomrec::InHook hook) {
    done = oomrec::recorder::set_dump_directory(hook, text_of(directory), max_dumps, max_total_mb);
  });
  return done ? 1 : 0;
}

OOMREC_EXPORT void oomrec_context_push(const char* text) {
  as_recorder([&](oomrec::InHook hook) { oomrec::recorder::push_context(hook, text_of(text)); });
}

OOMREC_EXPORT void oomrec_context_pop(void) {
  as_recorder([](oomrec::InHook hook) { oomrec::recorder::pop_context(hook); });
}

}  // extern "C"
