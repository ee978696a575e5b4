// The C library starts the shell of system and popen with the program's environment. After `oomrec
// attach` that lacks LD_PRELOAD and the recorder's variables. So the hooks put two commands before
// the program's own: the shell exports the variables, and executes a second shell in its place,
// which loads the recorder and runs the program's command.
#include "shim/attach/shell_commands.h"

#include <alloca.h>
#include <paths.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

#include "common/system/hook_scope.h"
#include "shim/interpose/next.h"
#include "shim/interpose/redirections.h"
#include "shim/process.h"

namespace oomrec::shim {
namespace {

constinit decltype(&::system) g_next_system = nullptr;
constinit decltype(&::popen) g_next_popen = nullptr;

// As a text that a shell reads; with a null start it only counts.
class ShellText {
 public:
  explicit ShellText(char* start) noexcept : at_(start) {}

  void add(std::string_view text) noexcept {
    bytes_ += text.size();
    if (at_ != nullptr) at_ = static_cast<char*>(::mempcpy(at_, text.data(), text.size()));
  }
  void add_quoted(std::string_view text) noexcept {
    for (const char& letter : text) {
      if (letter == '\'')
        add("'\\''");
      else
        add({&letter, 1});
    }
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  char* at_;
  std::size_t bytes_ = 0;
};

constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr std::size_t kMostBytes = 32 * 1024;  // it is on the stack

// export LD_PRELOAD='…' OOMREC_MODE='exact'; exec /bin/sh -c -- 'COMMAND' sh
// The last word is what the shell calls itself in its messages, as in the C library's call.
void write(ShellText& text, const char* const* variables, std::string_view command) noexcept {
  text.add("export");
  for (; *variables != nullptr; ++variables) {
    const std::string_view variable{*variables};
    const std::size_t value = variable.find('=') + 1;
    text.add(" ");
    text.add(variable.substr(0, value));
    text.add("'");
    text.add_quoted(variable.substr(value));
    const char* const others = variable.starts_with(kPreload) ? ::getenv("LD_PRELOAD") : nullptr;
    if (others != nullptr && *others != '\0') {
      text.add(":");
      text.add_quoted(others);
    }
    text.add("'");
  }
  text.add("; exec " _PATH_BSHELL " -c -- '");
  text.add_quoted(command);
  text.add("' sh");
  text.add({"\0", 1});
}

template <class Start>
auto with_recorded_shell(const char* command, Start start) {
  const char* const* variables = nullptr;
  std::size_t bytes = 0;
  if (command != nullptr && ::strlen(command) < kMostBytes) {
    const KeepErrno keep;
    variables = variables_for_child(_PATH_BSHELL);
    if (variables != nullptr) {
      ShellText length{nullptr};
      write(length, variables, command);
      bytes = length.bytes();
    }
  }
  if (bytes == 0 || bytes > kMostBytes) return start(command);
  auto* const changed = static_cast<char*>(alloca(bytes));
  ShellText text{changed};
  write(text, variables, command);
  return start(static_cast<const char*>(changed));
}

// Not noexcept: system is a cancellation point.
int hook_system(const char* command) {
  return with_recorded_shell(command, [](const char* text) { return g_next_system(text); });
}

FILE* hook_popen(const char* command, const char* type) {
  return with_recorded_shell(command, [=](const char* text) { return g_next_popen(text, type); });
}

}  // namespace

void redirect_shell_commands() noexcept {
  const void* const next_system = next_definition("system");
  const void* const next_popen = next_definition("popen");
  g_next_system = reinterpret_cast<decltype(g_next_system)>(const_cast<void*>(next_system));
  g_next_popen = reinterpret_cast<decltype(g_next_popen)>(const_cast<void*>(next_popen));
  add_redirection("system", next_system, reinterpret_cast<const void*>(&hook_system));
  add_redirection("popen", next_popen, reinterpret_cast<const void*>(&hook_popen));
}

}  // namespace oomrec::shim
