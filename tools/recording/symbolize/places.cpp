#include "tools/recording/symbolize/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/session/python_lines.h"
#include "tools/recording/symbolize/cached_symbols.h"

namespace oomrec::tools::recording {
namespace {

using session::FrameKind;
using session::SpecialFrame;
using session::TableId;

std::string hexadecimal(const std::uint8_t* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// "libpython3.11.so.1.0", "python3.11": what runs Python code. "python_magic.so" is a module.
bool is_interpreter(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("libpython") || name.starts_with("libpypy")) return true;
  return (name.starts_with("python") || name.starts_with("pypy")) && !name.ends_with(".so");
}

Place note(std::string text) {
  Place place;
  place.kind = Place::Kind::note;
  place.function = std::move(text);
  return place;
}

}  // namespace

struct Places::ModuleEntry {
  std::string path;
  std::string build_id;
  bool interpreter = false;
  bool unreadable = false;
  std::unique_ptr<CachedSymbols> symbols;
};

Places::Places(const Recording& recording, StoredSymbols stored,
               std::shared_ptr<const CacheDirectory> cache)
    : recording_(recording), stored_(std::move(stored)), cache_(std::move(cache)) {
  places_.emplace_back();  // 0: none
}

Places::~Places() = default;

Places::ModuleEntry& Places::module(std::uint32_t id) {
  if (id >= modules_.size()) modules_.resize(id + 1);
  std::unique_ptr<ModuleEntry>& entry = modules_[id];
  if (entry != nullptr) return *entry;
  entry = std::make_unique<ModuleEntry>();
  session::Module row{};
  if (id == 0 || !recording_.view().read(TableId::modules, id, row)) return *entry;
  const std::size_t id_bytes = std::min<std::size_t>(row.build_id_bytes, sizeof row.build_id);
  entry->path = recording_.text(row.path);
  entry->build_id = hexadecimal(row.build_id, id_bytes);
  entry->interpreter = is_interpreter(entry->path);
  if (auto symbols = ModuleSymbols::open(entry->path, {row.build_id, id_bytes})) {
    entry->symbols = std::make_unique<CachedSymbols>(std::move(symbols), entry->build_id, cache_);
  }
  entry->unreadable = entry->symbols == nullptr && entry->path.starts_with('/');
  return *entry;
}

std::vector<Place> Places::native_places(std::uint64_t frame) {
  const std::uint32_t id = session::module_of(frame);
  const std::uint64_t offset = session::offset_of(frame);
  ModuleEntry& from = module(id);
  // A return address belongs to the instruction behind the call: one byte before it is the call.
  const std::uint64_t address = session::is_exact(frame) || offset == 0 ? offset : offset - 1;
  std::vector<Location> locations;
  if (from.symbols != nullptr) locations = from.symbols->find(address);
  if (locations.empty()) locations = stored_.find(from.build_id, offset);
  if (locations.empty()) locations.emplace_back();

  std::vector<Place> places;
  for (Location& location : locations) {
    Place place;
    place.function = std::move(location.function);
    place.file = std::move(location.file);
    place.line = location.line;
    place.inlined = location.inlined;
    place.guessed = session::is_guessed(frame);
    place.interpreter = from.interpreter;
    place.module = from.path.empty() ? 0 : id;
    place.offset = offset;
    places.push_back(std::move(place));
  }
  return places;
}

Place Places::python_place(std::uint64_t frame) const {
  Place place;
  place.kind = Place::Kind::python;
  session::Code code{};
  if (!recording_.view().read(TableId::codes, session::code_of(frame), code)) return place;
  place.function = recording_.text(code.name);
  place.file = recording_.text(code.file);
  place.line = session::python_line(recording_.header().python.version_hex, code.first_line,
                                    recording_.view().string(code.line_table),
                                    session::instruction_of(frame));
  return place;
}

// Two addresses on one line of one function are one place; without a name each is its own.
PlaceId Places::intern(Place place) {
  const bool named = !place.function.empty() || !place.file.empty();
  std::string key =
      fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}{}", static_cast<int>(place.kind), place.function,
                  place.file, place.line, place.inlined, place.guessed);
  if (place.kind == Place::Kind::native) key += fmt::format("\x1f{}", place.module);
  if (!named || (place.kind == Place::Kind::native && place.line == 0 && place.function.empty())) {
    key += fmt::format("\x1f{:x}", place.offset);
  }
  const auto [at, is_new] = ids_.try_emplace(std::move(key), static_cast<PlaceId>(places_.size()));
  if (is_new) places_.push_back(std::move(place));
  return at->second;
}

const std::vector<PlaceId>& Places::of_frame(std::uint64_t frame) {
  const auto [at, is_new] = by_frame_.try_emplace(frame);
  if (!is_new) return at->second;
  std::vector<PlaceId> ids;
  switch (session::kind_of(frame)) {
    case FrameKind::native:
      for (Place& place : native_places(frame)) ids.push_back(intern(std::move(place)));
      break;
    case FrameKind::python:
      ids.push_back(intern(python_place(frame)));
      break;
    default:
      switch (session::special_of(frame)) {
        case SpecialFrame::truncated:
          ids.push_back(intern(note("[frames further out were not recorded]")));
          break;
        case SpecialFrame::inherited:
          ids.push_back(intern(note("[inherited from the parent process]")));
          break;
        case SpecialFrame::context:
          ids.push_back(
              intern(note("[" + recording_.text(static_cast<session::StringId>(frame)) + "]")));
          break;
        case SpecialFrame::rank:
          ids.push_back(intern(note(fmt::format("[rank {}]", session::argument_of(frame)))));
          break;
        default:
          break;
      }
  }
  return at->second = std::move(ids);
}

std::vector<PlaceId> Places::of_stack(std::uint32_t node) {
  std::vector<PlaceId> stack;
  recording_.view().walk(node, [&](std::uint64_t frame) {
    const std::vector<PlaceId>& ids = of_frame(frame);
    stack.insert(stack.end(), ids.begin(), ids.end());
  });
  return stack;
}

PlaceId Places::of_json(const Json& frame) {
  Place place;
  const bool python = text_of(frame, "kind") == "python";
  place.kind = python ? Place::Kind::python : Place::Kind::native;
  place.function = text_of(frame, "function").value_or("");
  place.file = text_of(frame, "file").value_or("");
  place.line = static_cast<std::uint32_t>(number_of(frame, "line").value_or(0));
  place.offset = number_of(frame, "offset").value_or(0);
  const std::string module = text_of(frame, "module").value_or("");
  if (!python && place.function.empty() && !module.empty())
    place = note(fmt::format("[{}+{:#x}]", module.substr(module.rfind('/') + 1), place.offset));
  return intern(std::move(place));
}

std::string Places::module_path(const Place& place) const {
  return place.module != 0 ? modules_[place.module]->path : std::string{};
}

std::string Places::build_id(const Place& place) const {
  return place.module != 0 ? modules_[place.module]->build_id : std::string{};
}

std::vector<std::string> Places::unreadable_modules() const {
  std::vector<std::string> paths;
  for (const auto& entry : modules_) {
    if (entry != nullptr && entry->unreadable) paths.push_back(entry->path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

}  // namespace oomrec::tools::recording
