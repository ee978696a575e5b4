#include "recorder/failures/crash_link.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <span>
#include <string_view>

#include "recorder/code_flow/past_call.h"
#include "recorder/code_flow/result_flow.h"
#include "recorder/helper/crash_names.h"
#include "recorder/runtimes/native_end.h"
#include "recorder/session/writer.h"
#include "recorder/stack/memory_map.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::recorder {

using session::CrashLink;
using session::g_session;

namespace {

constexpr std::uint64_t kFewRequests = 8;  // as crash_ruling.cpp counts them

// What a call returns when it fails, and what it might return otherwise.
struct Results {
  std::uint64_t failed, good;
};

// pthread_create returns EAGAIN for each lack, also that of memory for the stack.
int returned_error(const FailedRequest& failed) noexcept {
  return function_of(failed.request.api).has(kStartsThread) ? EAGAIN : failed.error;
}

Results results_of(const FailedRequest& failed) noexcept {
  constexpr std::uint64_t kPointer = 0x7e55'5555'5010;
  constexpr std::uint64_t kMinusOne = ~std::uint64_t{0};
  switch (function_of(failed.request.api).failed) {
    case Failed::minus_one_pointer:
      return {kMinusOne, kPointer};
    case Failed::minus_one_number:
      return {kMinusOne, 4711};
    case Failed::minus_one:
      return {kMinusOne, 0};
    case Failed::error_number:
      return {static_cast<std::uint64_t>(returned_error(failed)), 0};
    case Failed::null_pointer:
    case Failed::nothing:
      break;
  }
  return {0, kPointer};
}

std::uint32_t flags_of(const code_flow::ResultFlow& flow) noexcept {
  const struct {
    bool holds;
    std::uint32_t flag;
  } pairs[] = {{flow.checked, session::kLinkChecked},
               {flow.unchecked, session::kLinkUnchecked},
               {flow.kept, session::kLinkKept},
               {flow.only_on_failure, session::kLinkOnFailure},
               {flow.regardless, session::kLinkRegardless},
               {flow.derived, session::kLinkDerived},
               {flow.argument, session::kLinkArgument}};
  std::uint32_t flags = 0;
  for (const auto& [holds, flag] : pairs) flags |= holds ? flag : 0;
  return flags;
}

// Names without the helper: the verdict decides whether the helper is needed.
constinit symbols::ModuleNames<4096> g_names{};

bool name_in_module(InHook hook, std::uint64_t start, std::uint64_t pc, char* name,
                    std::size_t capacity) noexcept {
  return g_names.name_at(hook, start, pc, name, capacity);
}

// The innermost frames of the failed call that are the C library's.
struct LibraryFrames {
  std::uint32_t count = 0;
  std::uint64_t library = 0;  // where it is mapped
};
LibraryFrames library_frames(InHook hook, std::span<const stack::Activation> frames) noexcept {
  const session::View view = g_session.view();
  LibraryFrames found;
  for (const stack::Activation& frame : frames) {
    session::Module module{};
    const bool is_library =
        view.read(session::TableId::modules, stack::module_at(hook, frame.pc - 1).id, module) &&
        view.string(module.path).find("/libc.so") != std::string_view::npos;
    if (!is_library) break;
    ++found.count;
    found.library = module.start;
  }
  return found;
}

// Functions of the C library that return -1 where memory is short, and otherwise store a pointer to
// what they have allocated where an argument (its number) points to.
struct Storing {
  std::string_view name;
  std::uint8_t argument;
  bool ambiguous;  // -1 has other reasons, too
};
constexpr Storing kStoring[] = {
    {"asprintf", 0, false},      {"vasprintf", 0, false}, {"asprintf_chk", 0, false},
    {"vasprintf_chk", 0, false}, {"getline", 0, true},    {"getdelim", 0, true},
    {"scandir", 1, true},        {"scandir64", 1, true},  {"getaddrinfo", 3, true}};

const Storing* storing_function(InHook hook, std::uint64_t library, std::uint64_t pc) noexcept {
  char buffer[32];
  if (!name_in_module(hook, library, pc, buffer, sizeof buffer)) return nullptr;
  std::string_view name{buffer};
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  const Storing* const found =
      std::find_if(std::begin(kStoring), std::end(kStoring),
                   [&](const Storing& function) { return name == function.name; });
  return found == std::end(kStoring) ? nullptr : found;
}

// Follows the result of the program's own call instead, where it is known by its name.
void skip_library(InHook hook, const LibraryFrames& library,
                  code_flow::Question& question) noexcept {
  // Its frame may be that of a function without a name to which it has jumped.
  const std::uint64_t pc = question.frames[library.count - 1].pc - 1;
  const Storing* function = storing_function(hook, library.library, pc);
  if (function == nullptr && library.count < question.frames.size()) {
    const std::uint64_t called = code_flow::function_called(question.frames[library.count].pc);
    function = storing_function(hook, library.library, called);
  }
  if (function == nullptr) return;
  question.frames = question.frames.subspan(library.count);
  question.active -= library.count;
  question.library_frames = 0;
  question.failed_result = ~std::uint64_t{0};
  question.good_result = 1;
  question.stored_by = function->argument;
  question.ambiguous = function->ambiguous;
}

// `inner`: frames of the failed call inside the allocator that returned the result.
code_flow::ResultFlow follow_code(InHook hook, const session::Crash& crash,
                                  const CallBeforeCrash& before, const helper::CrashNames& names,
                                  std::uint32_t inner) noexcept {
  const FailedCall& call = before.call;
  const stack::Progress& progress = before.progress;
  if (inner >= call.count || inner > progress.ended) return {};
  const Results results = results_of(before.failed);
  const std::span frames{call.frames + inner, call.count - inner};
  const LibraryFrames library = library_frames(hook, frames);
  code_flow::Question question{.frames = frames,
                               .library_frames = library.count,
                               .active = progress.ended - inner,
                               .at = progress.at,
                               .exact = progress.exact,
                               // free() returns, but where it finds the heap damaged.
                               .aborted = crash.code <= 0 && !names.heap_corruption,
                               .fault_address = crash.address,
                               .in_allocator = names.heap_corruption,
                               .divided = before.signal == SIGFPE,
                               .failed_result = results.failed,
                               .good_result = results.good};
  const Function& function = function_of(before.failed.request.api);
  if (function.failed == Failed::error_number && function.has(kAllocator)) question.stored_by = 0;
  if (library.count != 0 && library.count <= question.active) skip_library(hook, library, question);
  return code_flow::follow_result(hook, question);
}

// What became of an operator new that throws instead of returning.
std::uint32_t follow_new(const helper::CrashNames& names, const CallBeforeCrash& before) noexcept {
  // It has not thrown yet: it is in the new handler.
  const bool active = before.progress.ended < names.new_frames && before.served_since == 0;
  return active ? session::kLinkOnFailure : session::kLinkThrown;
}

// glibc keeps what it says before it aborts: a pointer to the message's size and text.
bool is_double_free(InHook hook, std::uint64_t c_library) noexcept {
  symbols::ElfSymbols symbols{hook, c_library};
  const std::uint64_t variable = symbols.address_of(hook, "__abort_msg");
  std::uint64_t message = 0;
  char text[64];
  return variable != 0 && symbols::read_own_memory(hook, variable, &message, sizeof message) &&
         message != 0 &&
         symbols::read_own_memory(hook, message + sizeof(std::uint32_t), text, sizeof text) &&
         std::string_view{text, sizeof text}.find("double free") != std::string_view::npos;
}

// Where the memory around the address ends that can be written to; 0: nowhere.
std::uint64_t end_of_memory_at(InHook hook, std::uint64_t address) noexcept {
  stack::MemoryMap map(hook);
  stack::MappedRange range;
  std::uint64_t end = 0;
  while (map.next(range)) {
    if (end == 0 && (address < range.start || address >= range.end)) continue;
    if (!range.writable || (end != 0 && range.start != end)) break;
    end = range.end;
  }
  return end;
}

// A fault right behind the memory that the old block is in, where the new block would have been as
// large as that.
bool is_in_old_block(InHook hook, const FailedRequest& failed,
                     const session::Crash& crash) noexcept {
  constexpr std::uint64_t kStep = 64 * 1024;
  const Request& request = failed.request;
  if (request.old_block == 0 || crash.address < request.old_block ||
      crash.address - request.old_block >= request.bytes)
    return false;
  const std::uint64_t end = end_of_memory_at(hook, request.old_block);
  return end != 0 && crash.address >= end && crash.address - end < kStep;
}

}  // namespace

void fill_in_link(InHook hook, CrashLink& link, session::Crash& crash,
                  const CallBeforeCrash& before) noexcept {
  link.served_since = before.served_since;
  link.failure_frames = before.call.count;
  link.common_frames = before.call.count - before.progress.ended;
  if (before.by_other_thread) link.flags |= session::kLinkOtherThread;
  g_names.forget();
  const helper::CrashNames names =
      helper::names_of_crash(hook, g_session.view(), crash, name_in_module, link.function);
  crash.flags |= names.flags;
  const bool throws = (names.flags & session::kCrashNew) != 0 && !names.nothrow;
  code_flow::ResultFlow flow;
  if (!throws) flow = follow_code(hook, crash, before, names, names.nothrow ? names.new_frames : 0);
  link.flags |= throws ? follow_new(names, before) : flags_of(flow);
  // The program's first acts afterwards may be those of one that overlooked the report.
  if (flow.lost && before.served_since <= kFewRequests) link.flags |= session::kLinkKept;
  if (names.heap_corruption) {
    link.flags |= session::kLinkHeapCorruption;
    if (is_double_free(hook, names.c_library)) link.flags |= session::kLinkDoubleFree;
  }
  if (names.cxx_runtime != 0) {
    const ThrownException thrown =
        thrown_exception(hook, names.cxx_runtime, returned_error(before.failed), link.exception);
    if (thrown.is_bad_alloc) link.flags |= session::kLinkBadAlloc;
    if (thrown.handled_bad_alloc) link.flags |= session::kLinkHandling;
    if (thrown.says_memory) link.flags |= session::kLinkSaysMemory;
  }
  if (is_in_old_block(hook, before.failed, crash)) link.flags |= session::kLinkOldBlock;
  const bool aborted = crash.code <= 0 && (link.flags & session::kLinkOnFailure) == 0;
  if (aborted && ended_for_failure_in_rust(hook, crash, flow.at_once))
    link.flags |= session::kLinkOnFailure;
  link.flags |= session::kLinkKnown;
}

}  // namespace oomrec::recorder
