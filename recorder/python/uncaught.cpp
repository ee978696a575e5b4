#include "recorder/python/uncaught.h"

#include "common/system/files.h"
#include "recorder/python/thread.h"

namespace oomrec::stack {

namespace {

// PyTypeObject: the object's header ends with its type, its size follows, then tp_name.
std::string_view name_of_type(std::uint64_t type) noexcept {
  const std::uint64_t at = type + g_interpreter.at.object_type + 2 * sizeof(std::uint64_t);
  const auto* const name = load<const char*>(at);
  return name != nullptr ? std::string_view{name} : std::string_view{};
}

// The pools of multiprocessing, concurrent.futures and those made after them send the text of a
// worker's traceback as an exception of such a type, the __cause__ of the one that they raise
// again. PyBaseExceptionObject: header, __dict__, args, __notes__ (since 3.11), traceback, context,
// cause.
bool is_of_worker(std::uint64_t exception) noexcept {
  constexpr std::uint32_t k311 = 0x030b0000;
  const std::uint64_t fields = g_interpreter.version_hex >= k311 ? 5 : 4;  // before the cause
  const std::uint64_t header_bytes = g_interpreter.at.object_type + sizeof(std::uint64_t);
  const auto cause = load<std::uint64_t>(exception + header_bytes + fields * sizeof(std::uint64_t));
  return cause != 0 && name_of_type(load<std::uint64_t>(cause + g_interpreter.at.object_type))
                           .ends_with("RemoteTraceback");
}

}  // namespace

Uncaught uncaught_memory_error() noexcept {
  const Interpreter& python = g_interpreter;
  if (!python.ready.load(std::memory_order_acquire) || python.sys_object == nullptr ||
      python.is_subtype == nullptr || python.memory_error == 0 ||
      system::thread_id() != system::process_id() || !thread_state().attached)
    return {};
  const auto type = reinterpret_cast<std::uint64_t>(python.sys_object("last_type"));
  const auto value = reinterpret_cast<std::uint64_t>(python.sys_object("last_value"));
  void* const wanted = load<void*>(python.memory_error);
  const auto type_of = [&](std::uint64_t object) {
    return load<std::uint64_t>(object + python.at.object_type);
  };
  // The program may have put anything there.
  if (type == 0 || wanted == nullptr || type_of(type) != python.type_type ||
      python.is_subtype(reinterpret_cast<void*>(type), wanted) == 0)
    return {};
  return {name_of_type(type), value != 0 && type_of(value) == type && is_of_worker(value)};
}

}  // namespace oomrec::stack
