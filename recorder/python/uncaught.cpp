#include "recorder/python/uncaught.h"

#include "common/system/files.h"
#include "recorder/python/thread.h"

namespace oomrec::stack {

std::string_view uncaught_memory_error() noexcept {
  const Interpreter& python = g_interpreter;
  if (!python.ready.load(std::memory_order_acquire) || python.sys_object == nullptr ||
      python.is_subtype == nullptr || python.memory_error == 0 ||
      system::thread_id() != system::process_id() || !thread_state().attached)
    return {};
  void* const type = python.sys_object("last_type");
  void* const wanted = load<void*>(python.memory_error);
  const auto address = reinterpret_cast<std::uint64_t>(type);
  const auto is_type = [&] {  // the program may have put anything there
    const auto metatype = load<std::uint64_t>(address + python.at.object_type);
    return metatype == python.type_type;
  };
  if (type == nullptr || wanted == nullptr || !is_type() || python.is_subtype(type, wanted) == 0)
    return {};
  // PyTypeObject: the object's header ends with its type, its size follows, then tp_name.
  const std::uint64_t name_at = address + python.at.object_type + 2 * sizeof(std::uint64_t);
  const auto* const name = load<const char*>(name_at);
  return name != nullptr ? std::string_view{name} : std::string_view{};
}

}  // namespace oomrec::stack
