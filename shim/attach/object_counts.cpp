// Counts the objects that Python's garbage collector tracks, by type: what can be known of a Python
// heap that was there before the recorder.
//
// The interpreter's main thread does it, where it runs pending calls: between two instructions of
// Python code, as for a signal's handler. No other moment is safe: a thread that has released the
// interpreter's lock may hold one of a C library for which the lock's next owner waits.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "common/session/attach_pages.h"
#include "common/system/files.h"
#include "common/system/hook_scope.h"
#include "common/system/memory.h"
#include "common/system/text.h"
#include "recorder/python/interpreter.h"
#include "recorder/recorder.h"
#include "shim/api.h"
#include "shim/interpose/export.h"
#include "shim/interpose/loader.h"

namespace oomrec::shim {

struct ObjectCounts {
  session::ObjectCountsPage page;
  char text[session::kObjectCountsBytes];
};

}  // namespace oomrec::shim

extern "C" {
[[gnu::visibility("default")]] extern oomrec::shim::ObjectCounts oomrec_object_counts;
constinit oomrec::shim::ObjectCounts oomrec_object_counts{};
}

namespace oomrec::shim {
namespace {

using Object = void;  // PyObject

constexpr std::uint64_t kMostNs = 1'000'000'000;  // for which the program may stand still
constexpr std::uint32_t kObjectsBetweenClocks = 1024;
constexpr std::size_t kMostTypes = 4096;
constexpr std::size_t kMostRows = 200;

// --- The interpreter's functions -----------------------------------------------------------------

using PendingCall = int(void*);
using Visit = int(Object*, void*);

// X(name, result, parameters): the interpreter exports them in each version.
#define OOMREC_PYTHON_FUNCTIONS(X)                                          \
  X(Py_AddPendingCall, int, (PendingCall*, void*))                          \
  X(Py_GetVersion, const char*, ())                                         \
  X(Py_IsInitialized, int, ())                                              \
  X(Py_IncRef, void, (Object*))                                             \
  X(Py_DecRef, void, (Object*))                                             \
  X(PyErr_Fetch, void, (Object**, Object**, Object**))                      \
  X(PyErr_Restore, void, (Object*, Object*, Object*))                       \
  X(PyErr_Clear, void, ())                                                  \
  X(PyImport_GetModuleDict, Object*, ())                                    \
  X(PyImport_ImportModule, Object*, (const char*))                          \
  X(PyDict_GetItemString, Object*, (Object*, const char*))                  \
  X(PyDict_DelItemString, int, (Object*, const char*))                      \
  X(PyDict_Clear, void, (Object*))                                          \
  X(PyModule_GetDict, Object*, (Object*))                                   \
  X(PyInit_gc, Object*, ())                                                 \
  X(PyObject_CallMethod, Object*, (Object*, const char*, const char*, ...)) \
  X(PyObject_CallFunctionObjArgs, Object*, (Object*, ...))                  \
  X(PyObject_GetAttrString, Object*, (Object*, const char*))                \
  X(PyObject_IsTrue, int, (Object*))                                        \
  X(PyList_Size, std::ptrdiff_t, (Object*))                                 \
  X(PyList_GetItem, Object*, (Object*, std::ptrdiff_t))                     \
  X(PyLong_AsSize_t, std::size_t, (Object*))                                \
  X(PyUnicode_AsUTF8, const char*, (Object*))                               \
  X(PyUnicode_InternFromString, Object*, (const char*))                     \
  X(_PyType_Lookup, Object*, (Object*, Object*))                            \
  X(PyInterpreterState_Head, void*, ())                                     \
  X(PyInterpreterState_Next, void*, (void*))

struct PythonFunctions {
#define OOMREC_DECLARE(name, result, parameters) result(*name) parameters;
  OOMREC_PYTHON_FUNCTIONS(OOMREC_DECLARE)
#undef OOMREC_DECLARE
  void (*PyUnstable_GC_VisitObjects)(Visit*, void*);  // since 3.12, else null
  Object* PyBaseObject_Type;
  Object* PyMethodDescr_Type;
  Object* PyModule_Type;
  Object* PyType_Type;

  bool find() noexcept {
    const Dlsym look_up = real_dlsym();
    const auto find_one = [&](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(look_up(RTLD_DEFAULT, name));
      return to != nullptr;
    };
    find_one(PyUnstable_GC_VisitObjects, "PyUnstable_GC_VisitObjects");
    bool found = find_one(PyBaseObject_Type, "PyBaseObject_Type");
    found &= find_one(PyMethodDescr_Type, "PyMethodDescr_Type");
    found &= find_one(PyModule_Type, "PyModule_Type");
    found &= find_one(PyType_Type, "PyType_Type");
#define OOMREC_FIND(name, result, parameters) found &= find_one(name, #name);
    OOMREC_PYTHON_FUNCTIONS(OOMREC_FIND)
#undef OOMREC_FIND
    return found;
  }
};
constinit PythonFunctions g_python{};

// --- Types ---------------------------------------------------------------------------------------

// A word of a PyTypeObject, counted from tp_name, which follows the header of a sized object.
enum TypeWord : unsigned { kName = 0, kBasicSize = 1, kItemSize = 2, kFlags = 18 };
constexpr std::uint64_t kInlineValues = 1 << 2;  // Py_TPFLAGS_INLINE_VALUES, since 3.13
constexpr std::uint64_t kPreHeader = 3 << 3;     // Py_TPFLAGS_PREHEADER, since 3.11
constexpr std::uint64_t kCollectorHeader = 16;   // PyGC_Head
constexpr std::uint64_t kManagedPointers = 16;   // of the dictionary and the weak references

std::uint64_t word_of(const Object* type, TypeWord word) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(type);
  const std::uint64_t name_at = stack::g_interpreter.at.object_type + 2 * sizeof(std::uint64_t);
  return stack::load<std::uint64_t>(address + name_at + word * sizeof(std::uint64_t));
}

Object* type_of(const Object* object) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(object);
  return reinterpret_cast<Object*>(
      stack::load<std::uint64_t>(address + stack::g_interpreter.at.object_type));
}

std::uint64_t item_count(const Object* object) noexcept {  // ob_size; an integer's is its sign, too
  const auto address = reinterpret_cast<std::uint64_t>(object);
  const auto count = stack::load<std::int64_t>(address + stack::g_interpreter.at.object_type +
                                               sizeof(std::uint64_t));
  return static_cast<std::uint64_t>(count < 0 ? -count : count);
}

struct TypeCount {
  Object* type;
  Object* sizeof_method;  // borrowed; null: the size follows from the fields below
  std::uint64_t basic_bytes, item_bytes, header_bytes;
  std::uint64_t count, bytes;
};

struct Counts {
  TypeCount types[kMostTypes];
  TypeCount other;  // the sum of the types beyond kMostTypes
  Object* sizeof_name;
  Object* plain_sizeof;  // object.__sizeof__
  std::uint64_t until_ns;
  std::uint32_t until_clock;
  bool is_partial;
};
Counts* g_counts = nullptr;  // while objects are counted: so that it costs no address space else

// How many bytes an object has, without what it refers to, as sys.getsizeof says. A __sizeof__ in
// Python is the program's code, and is not run.
void describe_type(TypeCount& row, Object* type) noexcept {
  const std::uint64_t flags = word_of(type, kFlags);
  row.type = type;
  row.basic_bytes = word_of(type, kBasicSize);
  row.item_bytes = word_of(type, kItemSize);
  row.header_bytes = kCollectorHeader + ((flags & kPreHeader) != 0 ? kManagedPointers : 0);
  Object* const method = g_python._PyType_Lookup(type, g_counts->sizeof_name);
  const bool is_native = method != nullptr && type_of(method) == g_python.PyMethodDescr_Type;
  const bool is_plain = method == g_counts->plain_sizeof && (flags & kInlineValues) == 0;
  row.sizeof_method = is_native && !is_plain ? method : nullptr;
}

TypeCount& row_of(Object* type) noexcept {
  std::size_t at = (reinterpret_cast<std::uint64_t>(type) >> 4) * 0x9e3779b97f4a7c15 >> 52;
  static_assert(kMostTypes == std::size_t{1} << (64 - 52));
  for (std::size_t probes = 0; probes < kMostTypes / 2; ++probes, at = (at + 1) % kMostTypes) {
    TypeCount& row = g_counts->types[at];
    if (row.type == type) return row;
    if (row.type != nullptr) continue;
    describe_type(row, type);
    return row;
  }
  describe_type(g_counts->other, type);
  return g_counts->other;
}

std::uint64_t size_of(const TypeCount& row, Object* object) noexcept {
  if (row.sizeof_method != nullptr) {
    Object* const size = g_python.PyObject_CallFunctionObjArgs(row.sizeof_method, object, nullptr);
    if (size != nullptr) {
      const std::size_t bytes = g_python.PyLong_AsSize_t(size);
      g_python.Py_DecRef(size);
      if (bytes != ~std::size_t{0}) return bytes + row.header_bytes;
    }
    g_python.PyErr_Clear();
  }
  const std::uint64_t items = row.item_bytes != 0 ? item_count(object) * row.item_bytes : 0;
  return row.header_bytes + row.basic_bytes + items;
}

// False: the time is over.
bool count_one(Object* object) noexcept {
  TypeCount& row = row_of(type_of(object));
  ++row.count;
  row.bytes += size_of(row, object);
  if (--g_counts->until_clock != 0) return true;
  g_counts->until_clock = kObjectsBetweenClocks;
  g_counts->is_partial = system::monotonic_ns() > g_counts->until_ns;
  return !g_counts->is_partial;
}

int visit_one(Object* object, void*) { return count_one(object) ? 1 : 0; }

// --- The collector -------------------------------------------------------------------------------

// The module gc, whose functions exist in all versions. If the program has not imported it, it gets
// one that it does not see, and that does not outlive this: its functions refer to it, so only a
// collection would free it otherwise. To 3.9 an import would keep a copy for the next one.
class CollectorModule {
 public:
  CollectorModule() : modules_(g_python.PyImport_GetModuleDict()) {
    module_ = modules_ != nullptr ? g_python.PyDict_GetItemString(modules_, "gc") : nullptr;
    is_ours_ = module_ == nullptr;
    if (!is_ours_) {
      g_python.Py_IncRef(module_);
      return;
    }
    module_ = g_python.PyInit_gc();
    if (module_ != nullptr && type_of(module_) == g_python.PyModule_Type) return;
    // Since 3.10 that is only its definition, which an import makes a module of.
    module_ = g_python.PyImport_ImportModule("gc");
    if (g_python.PyDict_DelItemString(modules_, "gc") != 0) g_python.PyErr_Clear();
  }
  ~CollectorModule() {
    if (module_ == nullptr) return;
    if (is_ours_) g_python.PyDict_Clear(g_python.PyModule_GetDict(module_));
    g_python.Py_DecRef(module_);
  }
  CollectorModule(const CollectorModule&) = delete;
  CollectorModule& operator=(const CollectorModule&) = delete;

  // PyObject_CallMethod without arguments would have the function's parser of arguments prepare
  // itself, for good.
  Object* call(const char* name) const noexcept {
    Object* const function =
        module_ != nullptr ? g_python.PyObject_GetAttrString(module_, name) : nullptr;
    Object* const result =
        function != nullptr ? g_python.PyObject_CallFunctionObjArgs(function, nullptr) : nullptr;
    if (function != nullptr) g_python.Py_DecRef(function);
    if (result == nullptr) g_python.PyErr_Clear();
    return result;
  }
  bool does(const char* name) const noexcept {  // or answers with a true value
    Object* const result = call(name);
    if (result == nullptr) return false;
    const bool is_true = g_python.PyObject_IsTrue(result) == 1;
    g_python.Py_DecRef(result);
    return is_true;
  }

 private:
  Object* modules_;
  Object* module_ = nullptr;
  bool is_ours_ = false;
};

// False: no memory for the list.
bool count_listed(const CollectorModule& collector) noexcept {
  Object* const list = collector.call("get_objects");  // the list itself is not in it
  if (list == nullptr) return false;
  const std::ptrdiff_t length = g_python.PyList_Size(list);
  for (std::ptrdiff_t i = 0; i < length; ++i)
    if (!count_one(g_python.PyList_GetItem(list, i))) break;
  g_python.Py_DecRef(list);
  return true;
}

// --- The answer ----------------------------------------------------------------------------------

// The text of a type's attribute, from `type` itself, so that a metaclass of the program's has no
// say. Empty: it has none, or not a text.
std::string_view attribute(Object* type, const char* name, system::Text&& to) noexcept {
  Object* const key = g_python.PyUnicode_InternFromString(name);
  Object* const descriptor =
      key != nullptr ? g_python._PyType_Lookup(g_python.PyType_Type, key) : nullptr;
  Object* const value =
      descriptor != nullptr
          ? g_python.PyObject_CallMethod(descriptor, "__get__", "OO", type, g_python.PyType_Type)
          : nullptr;
  const char* const text = value != nullptr ? g_python.PyUnicode_AsUTF8(value) : nullptr;
  if (text == nullptr) g_python.PyErr_Clear();
  if (text != nullptr) to << text;
  if (value != nullptr) g_python.Py_DecRef(value);
  if (key != nullptr) g_python.Py_DecRef(key);
  return to.view();
}

void append_name(system::Text& text, Object* type) noexcept {
  char module[200], name[200];
  const std::string_view in = attribute(type, "__module__", system::Text{module});
  const std::string_view own = attribute(type, "__qualname__", system::Text{name});
  if (!in.empty() && in != "builtins") text << in << '.';
  if (own.empty()) text << "?";
  for (const char one : own) text << (static_cast<unsigned char>(one) < ' ' ? '?' : one);
}

// "OBJECTS BYTES TYPES INTERPRETERS NANOSECONDS PARTIAL", then "COUNT BYTES NAME" for each type.
void write_answer(std::uint64_t took_ns) noexcept {
  TypeCount* const end = std::remove_if(std::begin(g_counts->types), std::end(g_counts->types),
                                        [](const TypeCount& row) { return row.count == 0; });
  std::uint64_t objects = g_counts->other.count, bytes = g_counts->other.bytes;
  for (const TypeCount* row = g_counts->types; row != end; ++row) {
    objects += row->count;
    bytes += row->bytes;
  }
  std::sort(g_counts->types, end,
            [](const TypeCount& a, const TypeCount& b) { return a.bytes > b.bytes; });
  std::uint64_t interpreters = 0;
  for (void* one = g_python.PyInterpreterState_Head(); one != nullptr && interpreters < 1000;
       one = g_python.PyInterpreterState_Next(one))
    ++interpreters;
  system::Text text{oomrec_object_counts.text};
  const auto number = [&](std::uint64_t value, char after) { text.number(value) << after; };
  number(objects, ' ');
  number(bytes, ' ');
  number(static_cast<std::uint64_t>(end - g_counts->types), ' ');
  number(interpreters, ' ');
  number(took_ns, ' ');
  number(g_counts->is_partial ? 1 : 0, '\n');
  for (const TypeCount* row = g_counts->types; row != end && row < g_counts->types + kMostRows;
       ++row) {
    if (text.size() + 512 > sizeof oomrec_object_counts.text) break;
    number(row->count, ' ');
    number(row->bytes, ' ');
    append_name(text, row->type);
    text << '\n';
  }
  oomrec_object_counts.page.bytes = static_cast<std::uint32_t>(text.size());
}

struct Unmap {
  ~Unmap() {
    system::unmap(g_counts, sizeof(Counts));
    g_counts = nullptr;
  }
};

bool count_objects() noexcept {
  const std::uint64_t begin = system::monotonic_ns();
  g_counts = static_cast<Counts*>(system::map_private(sizeof(Counts)));
  if (g_counts == nullptr) return false;
  const Unmap unmap;
  g_counts->until_clock = kObjectsBetweenClocks;
  g_counts->until_ns = begin + kMostNs;
  g_counts->sizeof_name = g_python.PyUnicode_InternFromString("__sizeof__");
  if (g_counts->sizeof_name == nullptr) return false;
  g_counts->plain_sizeof =
      g_python._PyType_Lookup(g_python.PyBaseObject_Type, g_counts->sizeof_name);
  bool is_counted = true;
  if (g_python.PyUnstable_GC_VisitObjects != nullptr) {
    g_python.PyUnstable_GC_VisitObjects(visit_one, nullptr);  // no collection meanwhile
  } else {
    const CollectorModule collector;
    const bool was_enabled = collector.does("isenabled");
    if (was_enabled) collector.does("disable");
    is_counted = count_listed(collector);
    if (was_enabled) collector.does("enable");
  }
  if (is_counted) write_answer(system::monotonic_ns() - begin);
  g_python.Py_DecRef(g_counts->sizeof_name);
  return is_counted;
}

// That is to count: not a fork's child, which has the pending call, too.
constinit int g_process = 0;

using Page = session::ObjectCountsPage;

std::atomic_ref<std::uint32_t> state() noexcept {
  return std::atomic_ref{oomrec_object_counts.page.state};
}

// Called by the interpreter, which holds its lock. The command may have given up since.
int run_pending(void*) {
  if (system::process_id() != g_process) return 0;
  std::uint32_t expected = Page::waiting;
  if (!state().compare_exchange_strong(expected, Page::counting)) return 0;
  as_recorder([](InHook hook) {
    Object *type = nullptr, *value = nullptr, *trace = nullptr;
    g_python.PyErr_Fetch(&type, &value, &trace);
    const bool is_counted = count_objects();
    g_python.PyErr_Clear();
    g_python.PyErr_Restore(type, value, trace);
    if (is_counted)
      recorder::record_preexisting_objects(
          hook, {oomrec_object_counts.text, oomrec_object_counts.page.bytes});
    state().store(is_counted ? Page::done : Page::failed, std::memory_order_release);
  });
  return 0;
}

}  // namespace
}  // namespace oomrec::shim

extern "C" {

// Result: nullptr, and the state of the page says how far it is; or why it cannot be done.
OOMREC_EXPORT const char* oomrec_count_objects(const char*) {
  using namespace oomrec;
  using namespace oomrec::shim;
  const KeepErrno keep;
  if (!stack::g_interpreter.ready.load(std::memory_order_acquire))
    return "no Python interpreter was found in it";
  if (!g_python.find()) return "its Python does not export the functions that this needs";
  if (std::strstr(g_python.Py_GetVersion(), "free-threading") != nullptr)
    return "its Python has no global lock, under which objects could be counted";
  if (g_python.Py_IsInitialized() == 0) return "its Python is not running";
  g_process = system::process_id();
  state().store(Page::waiting);
  if (g_python.Py_AddPendingCall(run_pending, nullptr) == 0) return nullptr;
  state().store(Page::none);
  return "its Python has too many pending calls";
}

}  // extern "C"
