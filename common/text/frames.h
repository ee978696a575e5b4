// Stacks for people: which code requested the memory, and each frame by name.
//
// Reads only the session. Names of native functions come from the caller, which knows whether the
// process' memory can be read. Allocates nothing; for hooks and for the emergency writer.
#pragma once

#include <span>
#include <string_view>

#include "common/session/view.h"
#include "common/system/hook_scope.h"
#include "common/text/json_writer.h"

namespace oomrec::text {

// Writes the NUL-terminated name of the exported function that contains the instruction at `pc`;
// its module is mapped at `start`. False: none. A null pointer: the process cannot be read.
using ExportedName = bool (*)(InHook, std::uint64_t start, std::uint64_t pc, char* name,
                              std::size_t capacity) noexcept;

// The package, library or program that requested the memory: "numpy", "python", "libfoo", "train".
// Skips allocators and the C and C++ libraries. Written to `buffer`, or a literal.
std::string_view requester_of(const session::View&, std::uint32_t node,
                              std::span<char> buffer) noexcept;

// The stack's innermost label; empty: none.
std::string_view label_of(const session::View&, std::uint32_t node) noexcept;

// Whether a module only allocates on behalf of others: allocators, the C and C++ libraries, the
// loader, GPU drivers and ourselves.
bool is_plumbing(std::string_view module_path) noexcept;

// The line of a frame that has this code; 0: unknown.
std::uint32_t line_of(const session::View&, const session::Code&, std::uint64_t frame) noexcept;

// Writes the stack of `node` as an array of FRAME objects, innermost first (docs/json.md).
void write_stack(InHook, JsonWriter&, const session::View&, std::uint32_t node,
                 ExportedName) noexcept;

// The same for frame words; skips special ones.
void write_frames(InHook, JsonWriter&, const session::View&, std::span<const std::uint64_t> frames,
                  ExportedName) noexcept;

// "8f3a…": the build-id in hexadecimal; empty if there is none. `buffer` holds 65 bytes.
std::string_view build_id_text(const session::Module&, std::span<char> buffer) noexcept;

// The exported name at a native frame; empty if there is none.
std::string_view exported_name(InHook, ExportedName, const session::Module&, std::uint64_t frame,
                               std::span<char> buffer) noexcept;

}  // namespace oomrec::text
