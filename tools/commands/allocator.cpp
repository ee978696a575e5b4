// mimalloc serves every `new` of the command: an analysis creates millions of small, short-lived
// nodes.
//
// mimalloc is C: out of memory, it aborts unless there is a new-handler. Ours throws
// std::bad_alloc, which main() reports. Before main nothing can catch it, but initializers of
// libraries allocate, and mimalloc first maps 32 MiB of address space. There the handler reports it
// and ends the command.
//
// mimalloc has a weak std::get_new_handler that always returns null. The reference to
// set_new_handler links libstdc++'s, which replaces it.
#include "tools/commands/allocator.h"

#ifdef OOMREC_MIMALLOC
#include <mimalloc-new-delete.h>
#endif
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "tools/commands/commands.h"

namespace oomrec::tools::commands {

namespace {

constinit bool g_in_main = false;
constinit Exit g_failure_exit = Exit::bad_input;

[[noreturn]] void end_without_memory() {
  constexpr std::string_view kLines =
      "oomrec: there is not enough memory to start\n"
      "  Raise the shell's limit (ulimit -v): 100 MiB is enough.\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLines.data(), kLines.size());
  _exit(code(g_failure_exit));
}

void on_no_memory() {
  if (g_in_main) throw std::bad_alloc{};
  end_without_memory();
}

// The runtime ends the command, too, if there is no memory for an exception.
constinit std::terminate_handler g_otherwise = nullptr;
[[noreturn]] void on_terminate() {
  constexpr std::size_t kLittle = 64 * 1024;
  if (std::current_exception() == nullptr && std::malloc(kLittle) == nullptr) end_without_memory();
  g_otherwise();
  std::abort();
}

// Runs before the initializers of all libraries.
void before_all(int count, char** words, char**) {
  std::set_new_handler(on_no_memory);
  if (count > 1 && std::strcmp(words[1], "run") == 0) g_failure_exit = Exit::run_failed;
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const g_first)(int, char**,
                                                                    char**) = before_all;

}  // namespace

Exit failure_exit() { return g_failure_exit; }
void throw_from_now_on() {
  g_in_main = true;
  g_otherwise = std::set_terminate(on_terminate);
}

}  // namespace oomrec::tools::commands
