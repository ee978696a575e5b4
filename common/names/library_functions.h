// Which functions are the standard library's, although the program's own module contains them.
#pragma once

#include <cstdint>
#include <string_view>

namespace oomrec::names {

// Whether the function belongs to the allocator, or to the standard library of C++, Rust or Zig:
// the compiler puts copies into every module that uses their templates. `name`: a symbol, or its
// name in the source without the type that it returns.
bool is_library_function(std::string_view name) noexcept;

// Whether it is a function of an allocator that programs link in: jemalloc (also as Rust's crates
// and DuckDB name it), mimalloc, tcmalloc, snmalloc, rpmalloc. Functions that such a one calls have
// names of all kinds.
bool is_allocator_function(std::string_view name) noexcept;

// Heaps whose objects a runtime collects: HotSpot's, the JVM; Go's.
enum class ManagedHeap : std::uint8_t { none, java, go };

// Whether it commits memory for such a runtime: for its heap if a function of that calls it, or at
// most two functions further out.
bool commits_for_managed_heap(std::string_view name) noexcept;
ManagedHeap managed_heap_of(std::string_view name) noexcept;

}  // namespace oomrec::names
