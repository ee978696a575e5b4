#include "tests/unit/recorder/doubles.h"

#include <time.h>

#include "recorder/helper/from_process.h"
#include "recorder/session/writer.h"
#include "recorder/stack/capture.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/modules.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {
void start() noexcept {}
void reset_thread(InHook, ThreadStacks&) noexcept {}
void on_modules_unloaded(InHook) noexcept {}
void check_next_module(InHook) noexcept {}
bool has_many_dead_modules() noexcept { return false; }
bool begin_forgetting_modules(InHook, bool) noexcept { return false; }
bool forget_module_slots(InHook, std::uint32_t&, std::uint32_t, std::uint32_t) noexcept {
  return true;
}
bool forget_module_entries(InHook, std::uint32_t&, std::uint32_t, std::uint32_t) noexcept {
  return true;
}
void on_unmapped(InHook, std::uint64_t, std::uint64_t) noexcept {}
void reset_after_fork(InHook hook) noexcept { reset_nodes(hook); }

std::uint32_t capture(InHook hook, ThreadStacks&, std::uint32_t group, Waiting) noexcept {
  const std::uint32_t node =
      intern(hook, group, session::native_frame(doubles::t_module, doubles::t_stack));
  if (node == 0 || doubles::t_function == 0) return node;
  return intern(hook, node, session::native_frame(doubles::t_module, doubles::t_function));
}

std::uint32_t current_activations(InHook, ThreadStacks&, std::span<Activation>) noexcept {
  return 0;
}
std::uint32_t capture_interrupted(InHook, ThreadStacks&, const Registers&,
                                  std::span<std::uint64_t> frames, std::span<const Activation>,
                                  Progress&) noexcept {
  frames[0] = session::native_frame(doubles::t_module, doubles::t_stack, {.exact = true});
  return 1;
}
bool is_own_code(std::uint64_t) noexcept { return false; }
bool is_beyond_stack(InHook, std::uint64_t, std::uint64_t) noexcept { return false; }

ModuleRef module_at(InHook, std::uint64_t) noexcept { return {doubles::t_interpreter, 0}; }

std::uint32_t module_slot_at(InHook, std::uint64_t) noexcept { return 0; }
const LoadedModule& loaded_module(std::uint32_t) noexcept {
  static const LoadedModule none{};
  return none;
}

// A module's slot is its id.
std::uint32_t module_slot_of(std::uint32_t id) noexcept { return id; }
std::uint64_t native_frame_in(InHook, std::uint32_t slot, std::uint64_t offset,
                              session::NativeFlags flags) noexcept {
  return session::native_frame(slot, offset, flags);
}

}  // namespace oomrec::stack

namespace oomrec::helper {

bool prepare(const char* const*) noexcept { return true; }
bool is_writing(int) noexcept { return false; }
bool run_from_process(InHook, const char*, unsigned) noexcept { return true; }
bool forget_bundles(InHook, unsigned) noexcept { return true; }
bool finish(InHook, unsigned) noexcept { return true; }
bool complete_last(InHook, OutcomeKind kind, std::int32_t, unsigned) noexcept {
  if (doubles::g_bundles.under_way) return false;
  ++doubles::g_bundles.completed;
  doubles::g_bundles.outcome = kind;
  return true;
}

bool complete_last_by_crash(InHook, const ReportOptions&, unsigned) noexcept {
  ++doubles::g_bundles.completed;
  doubles::g_bundles.outcome = OutcomeKind::signal;
  return true;
}

bool complete_texts_of(InHook, std::uint64_t number, const text::ExceptionTexts&,
                       unsigned) noexcept {
  ++doubles::g_bundles.completed;
  doubles::g_bundles.completed_last = number;
  return true;
}

std::string_view path_of(InHook, std::uint64_t number, std::span<char> buffer, unsigned) noexcept {
  if (number == 0 || number > doubles::g_bundles.written || buffer.empty()) return {};
  buffer[0] = static_cast<char>('0' + number % 10);
  return {buffer.data(), 1};
}

bundle::Result write_from_process(InHook, const bundle::Cause& cause, const bundle::Destination&,
                                  const ReportOptions&, unsigned, bool* texts_written) noexcept {
  if (texts_written != nullptr) *texts_written = true;
  if (doubles::g_bundles.lasts_ms != 0) {
    const timespec pause{0, static_cast<long>(doubles::g_bundles.lasts_ms) * 1'000'000};
    nanosleep(&pause, nullptr);
  }
  if (doubles::g_bundles.result == bundle::Result::written) {
    ++doubles::g_bundles.written;
    doubles::g_bundles.last = cause;
    doubles::g_bundles.near_device = session::g_session.header().near_device;
  }
  return doubles::g_bundles.result;
}

}  // namespace oomrec::helper
