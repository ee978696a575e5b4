// mimalloc serves every `new` of the command: an analysis makes millions of small, short-lived
// nodes.
//
// It is C, and where memory runs out it aborts, unless there is a new-handler. Ours throws what the
// language says, for main() to tell. Before main nothing could catch it, and the initializers of
// libraries need memory too, of which mimalloc takes 32 MiB of address space at first: there the
// handler tells it and ends the command.
//
// mimalloc brings a std::get_new_handler of its own, weak, which knows of no handler. That of
// libstdc++ takes its place because it is linked in, by the reference to set_new_handler.
#include "tools/commands/allocator.h"

#include <mimalloc-new-delete.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <string_view>

#include "tools/commands/commands.h"

namespace oomrec::tools::commands {

namespace {

constinit bool g_in_main = false;
constinit Exit g_failed = Exit::bad_input;

void on_no_memory() {
  if (g_in_main) throw std::bad_alloc{};
  constexpr std::string_view kLines =
      "oomrec: there is not enough memory to begin\n"
      "  Raise the limit that this shell has (ulimit -v): 100 MiB are enough.\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLines.data(), kLines.size());
  _exit(code(g_failed));
}

// Runs before the initializers of all libraries.
void before_all(int count, char** words, char**) {
  std::set_new_handler(on_no_memory);
  if (count > 1 && std::strcmp(words[1], "run") == 0) g_failed = Exit::run_failed;
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const g_first)(int, char**,
                                                                    char**) = before_all;

}  // namespace

Exit failed() { return g_failed; }
void main_begins() { g_in_main = true; }

}  // namespace oomrec::tools::commands
