// Names of code that was made at run time, from the maps that runtimes write for Linux' perf:
// /tmp/perf-PID.map, a line for each function, "START BYTES NAME" with hexadecimal figures. Of
// lines that overlap, the last one is right: memory of dropped code is used again.
//
// Allocates nothing and trusts no line.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/layout.h"
#include "common/system/files.h"

namespace oomrec::names {

struct MapLine {
  std::uint64_t start = 0, bytes = 0;
  std::string_view name;
};
// False: it is no such line.
bool parse_map_line(std::string_view text, MapLine& line) noexcept;

// A name in a map, as its runtime writes it, in parts.
struct GeneratedName {
  std::string_view function;  // empty: it has none of its own
  std::string_view file;      // that defines it; empty: unknown
  std::uint32_t line = 0;     // of the definition; 0: unknown
  bool is_glue = false;       // of the runtime: an interpreter's loop, a stub between functions
};
GeneratedName generated_name(std::string_view name) noexcept;

// Opens the map of a process of this pid namespace, if it is a file of ours, or we are root, and
// was written to since `since_ns` (CLOCK_REALTIME). `root`: "", or the root directory of the
// process.
system::File open_perf_map(const char* root, int pid, std::uint64_t since_ns) noexcept;
// That of the session's process, if its pid is of our pid namespace.
system::File open_perf_map(const session::Header&) noexcept;

// Calls visit(line, offset of its name in the file) for each line of the file, from `offset` on,
// until `visit` returns false. Returns where the first line begins that was not visited. Lines
// longer than `buffer` are left out.
template <class Visit>
std::uint64_t for_each_map_line(const system::File& file, std::uint64_t offset,
                                std::span<char> buffer, Visit&& visit) noexcept {
  for (;;) {
    const long got = file.read_at(offset, buffer.data(), buffer.size());
    if (got <= 0) return offset;
    const std::string_view text{buffer.data(), static_cast<std::size_t>(got)};
    std::size_t at = 0;
    for (std::size_t end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
      MapLine line;
      if (parse_map_line(text.substr(at, end - at), line) &&
          !visit(line, offset + static_cast<std::uint64_t>(line.name.data() - text.data())))
        return offset + at;
    }
    if (at == 0 && text.size() < buffer.size()) return offset;  // it is still being written
    offset += at == 0 ? text.size() : at;
  }
}

// An address whose name is wanted, with one bit of the caller's, which does not count.
using Wanted = std::uint64_t;
constexpr Wanted wanted(std::uint64_t address, bool bit) noexcept { return address << 1 | bit; }
constexpr std::uint64_t address_of(Wanted one) noexcept { return one >> 1; }

// Writes for each of `sorted` where in the file its name begins; 0: it has none. A map may have
// millions of lines, so it is read once for all of them, in `most_ns` at most.
void find_places(const system::File& file, std::span<const Wanted> sorted,
                 std::span<std::uint64_t> places, std::span<char> buffer,
                 std::uint64_t most_ns) noexcept;

// The name that begins at a place, in `buffer`; empty: it has none.
GeneratedName name_at(const system::File& file, std::uint64_t place,
                      std::span<char> buffer) noexcept;

}  // namespace oomrec::names
