// All forms of exec and spawn: the next program is inspected before it starts.
//
// A program that cannot be recorded (common/program/suitability.h) starts without this library in
// its LD_PRELOAD; the other entries stay. If the program has cleaned the environment, it stays
// clean. In a process that was attached to, the environment has no such entry: there the hooks add
// it, with the variables of `oomrec attach`. All of this also runs in vfork children, which share
// their parent's memory: no allocation, no stores; the edited environment is on the stack.
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "common/program/preload_list.h"
#include "common/program/suitability.h"
#include "common/system/files.h"
#include "common/system/hook_scope.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "common/text/text.h"
#include "recorder/failures/failures.h"
#include "recorder/recorder.h"
#include "shim/interpose/export.h"
#include "shim/interpose/next.h"
#include "shim/process.h"

namespace oomrec::shim {
namespace {

constexpr std::string_view kVariable = "LD_PRELOAD=";
constexpr std::size_t kMaxVariables = 4096;      // limit of an environment that we copy …
constexpr std::size_t kMaxListBytes = 8 * 1024;  // … and of its LD_PRELOAD

struct Settings {
  bool started;
  bool children;
  const char* library_name;
  std::atomic<const char* const*> added;  // add_to_environments(); null: nothing
};
constinit Settings g_settings{};

using Environment = char* const*;

// The position of our entry in an environment.
struct Preload {
  std::size_t variables = 0;  // all variables
  std::size_t index = 0;
  std::string_view list;  // empty: this library is not in it
};

Preload find_preload_variable(Environment environment) noexcept {
  Preload found;
  if (environment == nullptr || !g_settings.started) return found;
  for (; environment[found.variables] != nullptr; ++found.variables) {
    const std::string_view variable{environment[found.variables]};
    if (!variable.starts_with(kVariable)) continue;
    const std::string_view list = variable.substr(kVariable.size());
    if (program::find_preload(list, g_settings.library_name).empty()) continue;
    found.index = found.variables;
    found.list = list;
  }
  return found;
}

// Whether the program that `inspect` examines must start without this library.
template <class Inspect>
bool must_remove_preload(const Preload& preload, Inspect inspect) noexcept {
  if (preload.list.empty() || preload.variables > kMaxVariables ||
      preload.list.size() > kMaxListBytes || system::is_sandboxed())
    return false;
  return !g_settings.children || inspect().suitability != program::Suitability::suitable;
}

std::string_view name_of(const char* variable) noexcept {
  const std::string_view whole{variable};
  return whole.substr(0, whole.find('='));
}

// The variable in a list that ends with a null pointer; null: there is none.
const char* find_variable(const char* const* list, std::string_view name) noexcept {
  for (; *list != nullptr; ++list)
    if (name_of(*list) == name) return *list;
  return nullptr;
}

std::size_t count_of(const char* const* list) noexcept {
  std::size_t count = 0;
  while (list[count] != nullptr) ++count;
  return count;
}

// Whether it has most of this process' variables. Else the program has cleaned it.
bool is_own_environment(Environment environment) noexcept {
  if (environment == environ) return true;
  std::size_t all = 0, found = 0;
  for (Environment own = environ; own != nullptr && *own != nullptr; ++own, ++all)
    found += find_variable(environment, name_of(*own)) != nullptr ? 1 : 0;
  return 2 * found >= all;
}

// Whether the program that `inspect` examines gets the variables of `oomrec attach`.
template <class Inspect>
bool must_add(Environment environment, const char* const* added, Inspect inspect) noexcept {
  if (environment == nullptr || !g_settings.children || system::is_sandboxed()) return false;
  const char* const ours = find_variable(added, "LD_PRELOAD");
  const char* const list = find_variable(environment, "LD_PRELOAD");
  return ours != nullptr && count_of(environment) <= kMaxVariables &&
         (list == nullptr || ::strlen(list) <= kMaxListBytes) && is_own_environment(environment) &&
         // The loader would complain of a library that is not there, in another root.
         system::call(SYS_faccessat, AT_FDCWD, ours + kVariable.size(), R_OK) == 0 &&
         inspect().suitability == program::Suitability::suitable;
}

template <class Start>
int with_added(Environment environment, const char* const* added, Start start) noexcept {
  const char* const ours = find_variable(added, "LD_PRELOAD");
  const char* const list = find_variable(environment, "LD_PRELOAD");
  const std::string_view others = list != nullptr ? list + kVariable.size() : "";
  const std::size_t own_bytes = ::strlen(ours);
  auto* const preload = static_cast<char*>(alloca(own_bytes + 1 + others.size() + 1));
  char* at = static_cast<char*>(::mempcpy(preload, ours, own_bytes));
  if (!others.empty()) *at++ = ':';
  *static_cast<char*>(::mempcpy(at, others.data(), others.size())) = '\0';

  const std::size_t most = count_of(environment) + count_of(added) + 1;
  auto** const copy = static_cast<char**>(alloca(most * sizeof(char*)));
  char** end = copy;
  for (; *environment != nullptr; ++environment)
    if (find_variable(added, name_of(*environment)) == nullptr) *end++ = *environment;
  for (; *added != nullptr; ++added) *end++ = *added == ours ? preload : const_cast<char*>(*added);
  *end = nullptr;
  return start(copy);
}

// Calls `start` with the environment for this program.
template <class Inspect, class Start>
int with_environment(Environment environment, Inspect inspect, Start start) noexcept {
  const Preload preload = find_preload_variable(environment);
  const char* const* const added = g_settings.added.load(std::memory_order_acquire);
  if (added != nullptr && preload.list.empty() && must_add(environment, added, inspect))
    return with_added(environment, added, start);
  if (!must_remove_preload(preload, inspect)) return start(environment);
  auto** const copy = static_cast<char**>(alloca((preload.variables + 1) * sizeof(char*)));
  auto* const variable = static_cast<char*>(alloca(kVariable.size() + preload.list.size() + 1));
  ::memcpy(variable, kVariable.data(), kVariable.size());
  const std::size_t kept = program::copy_without_preload(preload.list, g_settings.library_name,
                                                         variable + kVariable.size());
  variable[kVariable.size() + kept] = '\0';
  char** end = copy;
  for (std::size_t i = 0; i < preload.variables; ++i) {
    if (i != preload.index)
      *end++ = environment[i];
    else if (kept != 0)
      *end++ = variable;
  }
  *end = nullptr;
  return start(copy);
}

// An environment that the program has cleaned, or in which it has put another LD_PRELOAD: `oomrec
// run` says so at the end. Not of `oomrec run` itself, which puts the recorder there. True: noted.
template <class Inspect>
bool note_lost_preload(InHook hook, pid_t pid, const char* file, Environment environment,
                       Inspect inspect) noexcept {
  if (!g_settings.started || !g_settings.children || environment == nullptr ||
      system::is_sandboxed() || !find_preload_variable(environment).list.empty())
    return false;
  const std::string_view name = text::base_name(file);
  const program::Inspection found = inspect();
  if (found.error != 0 || found.suitability != program::Suitability::suitable || name == "oomrec")
    return false;
  const char* const list = find_variable(environment, "LD_PRELOAD");
  char reason[512];
  system::Text text{reason};
  text << name << " was started with";
  list != nullptr ? text << ' ' << list << " instead of the recorder" : text << "out LD_PRELOAD";
  return recorder::note_unrecorded_image(hook, pid, text.view());
}

// A successful exec ends this image without a death. It is recorded before the call, and reverted
// after a failed one. The recorder stores nothing in a vfork child.
template <class Inspect, class Exec>
int observe_exec(const char* file, Environment environment, Inspect inspect, Exec exec) noexcept {
  if (!has_thread_storage()) return exec(environment);
  return with_environment(environment, inspect, [&](Environment chosen) {
    const pid_t own = system::process_id();
    bool is_noted = false;
    {
      const HookScope scope;
      const KeepErrno keep;
      recorder::before_exec(scope.in_hook());
      is_noted = note_lost_preload(scope.in_hook(), own, file, chosen, inspect);
    }
    const int result = exec(chosen);
    const HookScope scope;
    const KeepErrno keep;
    recorder::exec_failed(scope.in_hook());
    if (is_noted) recorder::note_unrecorded_image(scope.in_hook(), own, {});
    return result;
  });
}

int exec_path(const char* path, char* const* arguments, Environment environment) noexcept {
  return observe_exec(
      path, environment, [&] { return program::inspect(path); },
      [&](Environment chosen) { return g_next.execve(path, arguments, chosen); });
}

int exec_in_path(const char* file, char* const* arguments, Environment environment) noexcept {
  return observe_exec(
      file, environment, [&] { return program::inspect_in_path(file, ::getenv("PATH")); },
      [&](Environment chosen) { return g_next.execvpe(file, arguments, chosen); });
}

template <class Inspect, class Spawn>
int observe_spawn(pid_t* child, const char* file, Environment environment, Inspect inspect,
                  Spawn spawn) noexcept {
  pid_t own_child = 0;
  pid_t& started = child != nullptr ? *child : own_child;
  const int error = with_environment(environment, inspect, [&](Environment chosen) {
    const int result = spawn(&started, chosen);
    if (result != 0 || !has_thread_storage()) return result;
    const HookScope scope;
    const KeepErrno keep;
    note_lost_preload(scope.in_hook(), started, file, chosen, inspect);
    return result;
  });
  if (error != ENOMEM && error != EAGAIN) return error;
  const HookScope scope;
  const KeepErrno keep;
  if (scope.outermost())
    recorder::on_failure(scope.in_hook(), {Space::map, Api::posix_spawn, 0}, error,
                         recorder::FailedBy::system);
  return error;
}

}  // namespace

void start_exec(bool children, const char* library_path) noexcept {
  const char* const slash = ::strrchr(library_path, '/');
  g_settings.started = true;
  g_settings.children = children;
  g_settings.library_name = slash != nullptr ? slash + 1 : library_path;
}

void add_to_environments(const char* const* variables) noexcept {
  g_settings.added.store(variables, std::memory_order_release);
}

const char* const* variables_for_child(const char* path) noexcept {
  const char* const* const added = g_settings.added.load(std::memory_order_acquire);
  if (added == nullptr || !find_preload_variable(environ).list.empty()) return nullptr;
  return must_add(environ, added, [&] { return program::inspect(path); }) ? added : nullptr;
}

OOMREC_HOOK(int, execve, (const char* path, char* const* arguments, Environment environment)) {
  return exec_path(path, arguments, environment);
}
OOMREC_HOOK(int, execv, (const char* path, char* const* arguments)) {
  return exec_path(path, arguments, environ);
}
OOMREC_HOOK(int, execvp, (const char* file, char* const* arguments)) {
  return exec_in_path(file, arguments, environ);
}
OOMREC_HOOK(int, execvpe, (const char* file, char* const* arguments, Environment environment)) {
  return exec_in_path(file, arguments, environment);
}
OOMREC_HOOK(int, fexecve, (int fd, char* const* arguments, Environment environment)) {
  return observe_exec(
      "the program", environment, [&] { return program::inspect_at(fd, "", AT_EMPTY_PATH); },
      [&](Environment chosen) { return g_next.fexecve(fd, arguments, chosen); });
}
OOMREC_HOOK(int, execveat,
            (int directory, const char* path, char* const* arguments, Environment environment,
             int flags)) {
  return observe_exec(
      path, environment, [&] { return program::inspect_at(directory, path, flags); },
      [&](Environment chosen) {
        return g_next.execveat(directory, path, arguments, chosen, flags);
      });
}

// The forms with a list of arguments: collected on the stack, as libc does.
//  name      search          environment follows the arguments
#define OOMREC_EXEC_LISTS(X)     \
  X(execl, exec_path, false)     \
  X(execlp, exec_in_path, false) \
  X(execle, exec_path, true)

#define X(name, exec, has_environment)                                                  \
  OOMREC_HOOK(int, name, (const char* program, const char* first, ...)) {               \
    va_list rest;                                                                       \
    va_start(rest, first);                                                              \
    std::size_t count = 1;                                                              \
    for (const char* argument = first; argument != nullptr; ++count)                    \
      argument = va_arg(rest, const char*);                                             \
    va_end(rest);                                                                       \
    auto** const arguments = static_cast<char**>(alloca((count + 1) * sizeof(char*)));  \
    va_start(rest, first);                                                              \
    arguments[0] = const_cast<char*>(first);                                            \
    for (std::size_t i = 1; i < count; ++i) arguments[i] = va_arg(rest, char*);         \
    arguments[count] = nullptr;                                                         \
    Environment const environment = (has_environment) ? va_arg(rest, char**) : environ; \
    va_end(rest);                                                                       \
    return exec(program, arguments, environment);                                       \
  }
OOMREC_EXEC_LISTS(X)
#undef X

OOMREC_HOOK(int, posix_spawn,
            (pid_t * pid, const char* path, const void* actions, const void* attributes,
             char* const* arguments, Environment environment)) {
  return observe_spawn(
      pid, path, environment, [&] { return program::inspect(path); },
      [&](pid_t* child, Environment chosen) {
        return g_next.posix_spawn(child, path, actions, attributes, arguments, chosen);
      });
}
OOMREC_HOOK(int, posix_spawnp,
            (pid_t * pid, const char* file, const void* actions, const void* attributes,
             char* const* arguments, Environment environment)) {
  return observe_spawn(
      pid, file, environment, [&] { return program::inspect_in_path(file, ::getenv("PATH")); },
      [&](pid_t* child, Environment chosen) {
        return g_next.posix_spawnp(child, file, actions, attributes, arguments, chosen);
      });
}

}  // namespace oomrec::shim
