#include "recorder/python/attach.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "common/system/syscalls.h"
#include "recorder/python/codes.h"
#include "recorder/python/unchanged_links.h"
#include "recorder/python/waiting.h"
#include "recorder/session/writer.h"
#include "recorder/symbols/elf_symbols.h"

// clang-format off
#define OOMREC_PYTHON_SYMBOLS(X) \
  X(Py_GetVersion) X(Py_Version) X(PyCode_Type) X(PyType_Type) X(PyBytes_Type) X(PyUnicode_Type) X(_PyRuntime) \
  X(PyGILState_GetThisThreadState) X(_PyThreadState_UncheckedGet) X(PyThreadState_GetUnchecked) \
  X(Py_IsInitialized) X(_Py_IsFinalizing) X(Py_IsFinalizing) X(_PyEval_EvalFrameDefault) \
  X(PySys_GetObject) X(PyType_IsSubtype) X(PyExc_MemoryError) \
  X(PyMem_GetAllocator) X(PyMem_SetAllocator) \
  X(PyObject_GetArenaAllocator) X(PyObject_SetArenaAllocator)
// clang-format on

// Functions and data alike: we only take their addresses.
#define X(name) extern "C" [[gnu::weak]] const char name;
OOMREC_PYTHON_SYMBOLS(X)
#undef X

namespace oomrec::stack {
namespace {

#define X(name) k##name,
enum SymbolIndex { OOMREC_PYTHON_SYMBOLS(X) kSymbolCount };
#undef X
#define X(name) std::string_view{#name},
constexpr std::string_view kSymbolNames[] = {OOMREC_PYTHON_SYMBOLS(X)};
#undef X

struct Symbols {
  std::uint64_t address[kSymbolCount];
};

template <class Function>
Function function_at(std::uint64_t address) noexcept {
  return reinterpret_cast<Function>(address);
}

constexpr std::uint32_t kVersion313 = 0x030d0000;

std::uint32_t version_of(const Symbols& symbols) noexcept {
  if (symbols.address[kPy_Version] != 0) return load<std::uint32_t>(symbols.address[kPy_Version]);
  return parse_python_version(function_at<const char* (*)()>(symbols.address[kPy_GetVersion])());
}

// False for Py_TRACE_REFS and patched forks, whose object layout the offsets do not match.
bool types_are_where_expected(const Interpreter& python) noexcept {
  return load<std::uint64_t>(python.code_type + python.at.object_type) == python.type_type;
}

// tp_basicsize of the types whose instances we read; 0: not exported.
TypeSizes sizes_of_types(const Symbols& symbols) noexcept {
  constexpr std::uint64_t kBasicSize = 32;  // behind an object with a size, and tp_name
  const auto size = [&](SymbolIndex type) noexcept {
    return symbols.address[type] == 0 ? 0 : load<std::uint64_t>(symbols.address[type] + kBasicSize);
  };
  return {size(kPyCode_Type), size(kPyBytes_Type), size(kPyUnicode_Type)};
}

bool is_allocator(std::string_view name) noexcept {
  const char* const chosen = getenv("PYTHONMALLOC");
  return chosen != nullptr && std::string_view{chosen}.starts_with(name);
}

const char* set_up(Interpreter& python, const Symbols& symbols) noexcept {
  const char* problem = nullptr;
  const auto* const runtime = reinterpret_cast<const std::byte*>(symbols.address[k_PyRuntime]);
  python.version_hex = version_of(symbols);
  if (!find_python_offsets(python.version_hex, runtime, sizes_of_types(symbols), python.at,
                           problem))
    return problem;
  python.unverified.store(!is_known_version(python.version_hex), std::memory_order_relaxed);
  const bool since_313 = python.version_hex >= kVersion313;
  const std::uint64_t attached =
      symbols.address[since_313 ? kPyThreadState_GetUnchecked : k_PyThreadState_UncheckedGet];
  const std::uint64_t finalizing =
      symbols.address[since_313 ? kPy_IsFinalizing : k_Py_IsFinalizing];
  const std::uint64_t own = symbols.address[kPyGILState_GetThisThreadState];
  python.code_type = symbols.address[kPyCode_Type];
  python.type_type = symbols.address[kPyType_Type];
  if (attached == 0 || finalizing == 0 || own == 0 || python.code_type == 0 ||
      python.type_type == 0) {
    return "this Python does not export what is needed";
  }
  python.attached_state = function_at<void* (*)()>(attached);
  python.own_state = function_at<void* (*)()>(own);
  python.is_finalizing = function_at<int (*)()>(finalizing);
  python.is_initialized = function_at<int (*)()>(symbols.address[kPy_IsInitialized]);
  python.sys_object = function_at<void* (*)(const char*)>(symbols.address[kPySys_GetObject]);
  python.is_subtype = function_at<int (*)(void*, void*)>(symbols.address[kPyType_IsSubtype]);
  python.memory_error = symbols.address[kPyExc_MemoryError];
  python.allocators = {symbols.address[kPyMem_GetAllocator], symbols.address[kPyMem_SetAllocator],
                       symbols.address[kPyObject_GetArenaAllocator],
                       symbols.address[kPyObject_SetArenaAllocator]};
  python.has_own_heap.store(python.at.free_threaded, std::memory_order_relaxed);
  python.may_have_own_heap = since_313 && is_allocator("mimalloc");
  python.first_changed_link = first_changed_link_by(python.at);
  if (!types_are_where_expected(python)) return "this Python lays out its objects in its own way";
  if (!prepare_codes()) return "no memory for the table of code objects";
  return nullptr;
}

// The eval loop's code by its exported name; empty when that is not exported.
void find_eval_loop(InHook hook, symbols::ElfSymbols& module, Interpreter& python) noexcept {
  std::uint64_t bytes = 0;
  const std::uint64_t start =
      module.address_of(hook, kSymbolNames[k_PyEval_EvalFrameDefault], &bytes);
  python.eval_loop[0] = {start, start + bytes};
}

constinit std::atomic<bool> g_described{false};
constinit session::PoolObjects g_objects = session::PoolObjects::none;

// Attaches once, to the first interpreter.
void attach(InHook hook, const Symbols& symbols, std::uint64_t module_start) noexcept {
  static constinit std::atomic<bool> g_busy{false};
  if (g_busy.exchange(true, std::memory_order_acquire)) return;
  Interpreter& python = g_interpreter;
  if (!python.ready.load(std::memory_order_relaxed)) {
    python.problem = set_up(python, symbols);
    if (python.problem == nullptr && python.at.chain == FrameChain::frame_objects) {
      symbols::ElfSymbols module(hook, module_start);
      find_eval_loop(hook, module, python);
    }
    python.ready.store(python.problem == nullptr, std::memory_order_release);
    g_described.store(false, std::memory_order_relaxed);
    python_describe(hook);
    if (python.problem == nullptr && g_on_python != nullptr) g_on_python(hook);
  }
  g_busy.store(false, std::memory_order_release);
}

session::ObjectSource source_of_objects() noexcept {
  if (g_interpreter.has_own_heap.load(std::memory_order_relaxed))
    return session::ObjectSource::own_heap;
  return is_allocator("malloc") ? session::ObjectSource::malloc : session::ObjectSource::pymalloc;
}

}  // namespace

void python_start() noexcept {
  const Symbols symbols{{
#define X(name) reinterpret_cast<std::uint64_t>(&::name),
      OOMREC_PYTHON_SYMBOLS(X)
#undef X
  }};
  if (symbols.address[kPy_GetVersion] == 0) return;
  Dl_info module{};
  dladdr(reinterpret_cast<void*>(symbols.address[kPy_GetVersion]), &module);
  attach(OutsideHooks::in_hook(), symbols, reinterpret_cast<std::uint64_t>(module.dli_fbase));
}

bool is_free_threaded_python_linked() noexcept {
  const char* const runtime = &::_PyRuntime;
  return runtime != nullptr && is_free_threaded(reinterpret_cast<const std::byte*>(runtime));
}

void python_module_loaded(InHook hook, std::uint64_t start) noexcept {
  if (g_interpreter.ready.load(std::memory_order_relaxed)) return;
  symbols::ElfSymbols module(hook, start);
  if (module.address_of(hook, kSymbolNames[kPy_GetVersion]) == 0) return;
  Symbols symbols;
  for (unsigned i = 0; i < kSymbolCount; ++i) {
    symbols.address[i] = module.address_of(hook, kSymbolNames[i]);
  }
  attach(hook, symbols, start);
}

void python_modules_unloaded(InHook hook) noexcept {
  Interpreter& python = g_interpreter;
  if (!python.ready.load(std::memory_order_acquire)) return;
  std::uint64_t type = 0;
  const bool there = symbols::read_own_memory(hook, python.code_type + python.at.object_type, &type,
                                              sizeof type) &&
                     type == python.type_type;
  if (!there && !system::is_sandboxed()) python.ready.store(false, std::memory_order_relaxed);
}

void python_reset_after_fork(InHook hook) noexcept {
  reset_codes(hook);
  reset_waiting_after_fork(hook);
  g_described.store(false, std::memory_order_relaxed);
}

void record_pool_objects(InHook hook, session::PoolObjects objects) noexcept {
  g_objects = objects;
  g_described.store(false, std::memory_order_relaxed);
  python_describe(hook);
}

void python_reject(InHook hook, const char* problem) noexcept {
  g_interpreter.problem = problem;
  g_interpreter.ready.store(false, std::memory_order_release);
  g_described.store(false, std::memory_order_relaxed);
  python_describe(hook);
}

void python_describe(InHook hook) noexcept {
  if (!session::g_session.active() || g_described.load(std::memory_order_relaxed)) return;
  if (g_interpreter.version_hex == 0 || g_described.exchange(true)) return;
  session::Python& python = session::g_session.header().python;
  const char* const problem = g_interpreter.problem;
  python.version_hex = g_interpreter.version_hex;
  python.status = problem == nullptr ? 0 : session::g_session.add_string(hook, problem);
  python.source = source_of_objects();
  python.objects =
      python.source == session::ObjectSource::malloc ? session::PoolObjects::none : g_objects;
}

}  // namespace oomrec::stack
