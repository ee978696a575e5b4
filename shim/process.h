// Functions of the process hooks for the constructor.
#pragma once

namespace oomrec::shim {

// Observes the end of the program's exit handlers. Called once, by the constructor.
void start_exit() noexcept;

// Sets whether children are recorded too, and the file name of this library. Called once, by the
// constructor.
void start_exec(bool children, const char* library_path) noexcept;

}  // namespace oomrec::shim
