#include "tools/views/report/location_kinds.h"

#include <fmt/format.h>

#include <string_view>

#include "common/text/frames.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::views {
namespace {

// Code of allocators. Compilers copy it into any module, so names count as well as modules.
bool is_allocator(const recording::Location& location, const recording::Locations& locations) {
  return location.kind == recording::Location::Kind::native &&
         (text::is_plumbing(locations.module_path(location)) ||
          recording::is_library_function(location));
}

bool is_own(recording::LocationId id, const recording::Locations& locations) {
  if (id == 0 || locations[id].kind == recording::Location::Kind::note) return false;
  const recording::Interest interest = recording::interests({id}, locations).front();
  return interest == recording::Interest::own_line || interest == recording::Interest::own_function;
}

}  // namespace

std::uint8_t kind_bits(recording::LocationId id, const recording::Locations& locations) {
  const recording::Location& location = locations[id];
  unsigned bits = static_cast<unsigned>(location.kind) & kKindMask;
  if (location.inlined) bits |= kInlined;
  if (location.interpreter) bits |= kInterpreter;
  if (location.guessed) bits |= kGuessed;
  if (is_allocator(location, locations)) bits |= kAllocator;
  if (recording::is_import_machinery(location)) bits |= kImport;
  if (is_own(id, locations)) bits |= kOwn;
  return static_cast<std::uint8_t>(bits);
}

std::string name_of_location(const recording::Location& location,
                             const recording::Locations& locations) {
  if (!location.function.empty() || location.kind != recording::Location::Kind::native)
    return location.function;
  const std::string path = locations.module_path(location);
  if (path.empty())
    return location.offset == 0 ? "" : fmt::format("unknown code+{:#x}", location.offset);
  return fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1), location.offset);
}

}  // namespace oomrec::tools::views
