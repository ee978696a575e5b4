// What the hooks of processes share.
#pragma once

namespace oomrec::shim {

// How the program reaches its exit handlers' end. Once, from the constructor.
void start_exit() noexcept;

// Whether children are recorded too, and the file name of this library. Once, from the constructor.
void start_exec(bool children, const char* library_path) noexcept;

}  // namespace oomrec::shim
