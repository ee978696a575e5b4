// The table of pointers through which the program enters the hooks of C functions: each exported
// symbol is a jump to its pointer (entries.S), with unchanged stack and registers.
#pragma once

namespace oomrec::shim {

// For a program that is not to be observed: lets all entries jump to the next definitions, so that
// no code of ours runs in its calls, nor needs its thread's storage. dlsym stays ours: it hides our
// own definitions of the drivers' functions. Called at most once, by the constructor, after
// resolve_next().
void bypass_hooks() noexcept;

}  // namespace oomrec::shim
