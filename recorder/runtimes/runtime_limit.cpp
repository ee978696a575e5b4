#include "recorder/runtimes/runtime_limit.h"

#include "common/text/frames.h"
#include "common/text/text.h"
#include "common/verdict/runtimes.h"
#include "recorder/session/writer.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/thread_state.h"
#include "recorder/symbols/elf_symbols.h"
#include "recorder/symbols/file_symbols.h"

namespace oomrec::recorder {

using session::g_session;
using session::Module;
using session::TableId;
using verdict::LimitFunction;

namespace {

constexpr unsigned kMostRuntimeFrames =
    24;  // a runtime gives up a few calls above abort() or exit()

bool is_libjvm(std::string_view path) noexcept { return text::base_name(path) == "libjvm.so"; }

const LimitFunction* exported_function(InHook hook, const Module& module,
                                       std::uint64_t pc) noexcept {
  char name[128];
  std::uint64_t offset = 0;
  symbols::ElfSymbols exported(hook, module.start);
  if (!exported.valid() || !exported.name_at(hook, pc, name, sizeof name, offset)) return nullptr;
  return verdict::limit_function(name);
}

const LimitFunction* unexported_function(InHook hook, const Module& module,
                                         std::uint64_t pc) noexcept {
  char path[512];
  if (!copy_path(module, path)) return nullptr;
  const symbols::FileSymbols file(hook, path, module.start);
  return file.valid() ? verdict::limit_function(file.function_at(pc - module.base)) : nullptr;
}

// What the calling thread's stack shows of its end.
struct EndStack {
  const LimitFunction* function = nullptr;  // in which a runtime gives up
  bool in_jvm = false;
};

// `exported`: with a pass over the exported names for each frame; libjvm exports none of its own.
EndStack read_end_stack(InHook hook, bool exported) noexcept {
  EndStack found;
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) return found;
  const NodeScope nodes{hook, thread};
  const session::View view = g_session.view();
  unsigned frames = 0;
  view.walk(stack::capture(hook, thread->stacks, thread->root(hook)), [&](std::uint64_t frame) {
    Module module{};
    if (found.function != nullptr || ++frames > kMostRuntimeFrames ||
        session::kind_of(frame) != session::FrameKind::native ||
        !view.read(TableId::modules, session::module_of(frame), module))
      return;
    const std::uint64_t pc = module.base + session::offset_of(frame) - 1;  // within the call
    const bool in_jvm = is_libjvm(view.string(module.path));
    found.in_jvm = found.in_jvm || in_jvm;
    if (in_jvm)
      found.function = unexported_function(hook, module, pc);
    else if (exported)
      found.function = exported_function(hook, module, pc);
  });
  return found;
}

void record(session::Runtime runtime, Certainty certainty, std::string_view evidence) noexcept {
  session::RuntimeLimit& limit = g_session.header().runtime_limit;
  limit.certainty = static_cast<std::uint32_t>(certainty);
  text::Text{limit.evidence}.add(evidence);
  limit.runtime.store(static_cast<std::uint32_t>(runtime), std::memory_order_release);
}

void record_function(const LimitFunction& function, std::string_view end) noexcept {
  char words[160];
  text::Text evidence{words};
  evidence.add(function.name).add(" is on the stack of its ").add(end);
  record(function.runtime, Certainty::proven, evidence.view());
}

std::uint32_t counter(InHook hook, const symbols::FileSymbols& file, const Module& module,
                      std::string_view symbol) noexcept {
  const std::uint64_t value = file.value_of(symbol);
  std::uint32_t count = 0;
  if (value != 0) symbols::read_own_memory(hook, module.base + value, &count, sizeof count);
  return count;
}

// OutOfMemoryErrors that the JVM has thrown, for its heap or its metaspace, by counters that libjvm
// keeps but does not export: the symbol table of its file has their addresses, as JDKs are shipped.
// Those that Java code throws (direct memory) are not counted. 0 without a JVM, whose code has
// appeared on a stack.
std::uint32_t count_jvm_errors(InHook hook) noexcept {
  constexpr std::string_view kCounters[] = {
      "_ZN10Exceptions37_out_of_memory_error_java_heap_errorsE",
      "_ZN10Exceptions37_out_of_memory_error_metaspace_errorsE",
      "_ZN10Exceptions43_out_of_memory_error_class_metaspace_errorsE",
  };
  const session::View view = g_session.view();
  Module module{};
  char path[512];
  std::uint32_t errors = 0;
  for (std::uint64_t i = view.count(TableId::modules); i-- > 1 && errors == 0;) {
    if (!view.read(TableId::modules, i, module) || !is_libjvm(view.string(module.path)) ||
        !copy_path(module, path))
      continue;
    const symbols::FileSymbols file(hook, path, module.start);
    if (!file.valid()) continue;
    for (const std::string_view symbol : kCounters) errors += counter(hook, file, module, symbol);
  }
  return errors;
}

// After an uncaught exception of main() the launcher returns; System.exit() exits within libjvm.
// Which exception it was is unknown, only that the JVM has thrown such errors.
bool record_jvm_errors(InHook hook, int status, const EndStack& stack) noexcept {
  constexpr int kUncaught = 1;
  if (status != kUncaught || stack.in_jvm) return false;
  const std::uint32_t errors = count_jvm_errors(hook);
  if (errors == 0) return false;
  char words[160];
  text::Text evidence{words};
  evidence.add("main() ended with an exception, and the JVM has thrown ").number(errors);
  evidence.add(errors == 1 ? " OutOfMemoryError" : " OutOfMemoryErrors");
  record(session::Runtime::jvm, Certainty::possible, evidence.view());
  return true;
}

}  // namespace

bool copy_path(const Module& module, std::span<char> path) noexcept {
  text::Text words{path.data(), path.size()};
  words.add(g_session.view().string(module.path));
  return !words.truncated() && !words.view().empty();
}

bool record_limit_at_abort(InHook hook) noexcept {
  const EndStack stack = read_end_stack(hook, true);
  if (stack.function == nullptr) return false;
  record_function(*stack.function, "abort");
  return true;
}

bool record_limit_at_exit(InHook hook, int status) noexcept {
  const EndStack stack = read_end_stack(hook, false);
  if (stack.function == nullptr) return record_jvm_errors(hook, status, stack);
  record_function(*stack.function, "exit");
  return true;
}

void record_php_limit(InHook, std::string_view message) noexcept {
  char words[200];
  text::Text evidence{words};
  record(session::Runtime::php, Certainty::proven,
         evidence.add("PHP's last error: ").add(message).view());
}

void clear_runtime_limit(InHook) noexcept {
  g_session.header().runtime_limit.runtime.store(0, std::memory_order_relaxed);
}

bool at_runtime_limit(InHook) noexcept {
  return g_session.header().runtime_limit.runtime.load(std::memory_order_relaxed) != 0;
}

}  // namespace oomrec::recorder
