#include "tools/views/report/place_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/text/frames.h"
#include "tools/recording/stack_text/frame_selection.h"

namespace oomrec::tools::views {
namespace {

bool is_import_machinery(const recording::Place& place) {
  if (place.kind == recording::Place::Kind::python)
    return place.file.starts_with("<frozen importlib") ||
           place.file.find("/importlib/_bootstrap") != std::string::npos;
  constexpr std::array<std::string_view, 4> kNames = {"PyImport_", "_PyImport_", "import_",
                                                      "builtin___import__"};
  return place.interpreter && std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) {
           return place.function.starts_with(name);
         });
}

// What C++ code asks for memory through is inlined anywhere.
bool is_allocator(const recording::Place& place, const recording::Places& places) {
  if (place.kind != recording::Place::Kind::native) return false;
  constexpr std::array<std::string_view, 6> kNames = {
      "operator new", "std::", "__gnu_cxx::", "void std::", "void* std::", "void* __gnu_cxx::"};
  return text::is_plumbing(places.module_path(place)) ||
         std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return place.function.starts_with(name); });
}

bool is_own(recording::PlaceId id, const recording::Places& places) {
  if (id == 0 || places[id].kind == recording::Place::Kind::note) return false;
  const recording::Interest interest = recording::interests({id}, places).front();
  return interest == recording::Interest::own_line || interest == recording::Interest::own_function;
}

}  // namespace

std::uint8_t kind_bits(recording::PlaceId id, const recording::Places& places) {
  const recording::Place& place = places[id];
  unsigned bits = static_cast<unsigned>(place.kind) & kKindMask;
  if (place.inlined) bits |= kInlined;
  if (place.interpreter) bits |= kInterpreter;
  if (place.guessed) bits |= kGuessed;
  if (is_allocator(place, places)) bits |= kAllocator;
  if (is_import_machinery(place)) bits |= kImport;
  if (is_own(id, places)) bits |= kOwn;
  return static_cast<std::uint8_t>(bits);
}

std::string name_of_place(const recording::Place& place, const recording::Places& places) {
  if (!place.function.empty() || place.kind != recording::Place::Kind::native)
    return place.function;
  const std::string path = places.module_path(place);
  if (path.empty()) return place.offset == 0 ? "" : fmt::format("unknown code+{:#x}", place.offset);
  return fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1), place.offset);
}

}  // namespace oomrec::tools::views
