// Allocators that are linked into a module statically, under names of their own: jemalloc in Polars
// and DuckDB, jemalloc and mimalloc in Arrow.
//
// The module's blocks pass no function that we hook; their memory counts by the mappings that the
// allocator makes. It is recognized by its messages, which stripping leaves in the file.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace oomrec::tools::recording {

// Sorted; empty also if the file cannot be read, if it defines malloc itself, which makes it the
// allocator of all others, and of Python's interpreter. Cost: reads the constants of the module, at
// most kMostConstantBytes of them.
inline constexpr std::size_t kMostConstantBytes = std::size_t{256} << 20;
std::vector<std::string_view> linked_allocators_in(const std::filesystem::path& module);

}  // namespace oomrec::tools::recording
