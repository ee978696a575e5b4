#include "tools/recording/symbolize/locations.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "common/names/perf_map.h"
#include "common/session/view.h"
#include "common/text/frames.h"
#include "common/text/own_code.h"
#include "tools/recording/symbolize/cached_symbols.h"

namespace oomrec::tools::recording {
namespace {

using session::FrameKind;
using session::SpecialFrame;
using session::TableId;

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// The parts of V8's interpreter, which are in the program's file: how it gets from one JavaScript
// function to the next depends on the compilers that have run.
bool is_interpreter_glue(std::string_view function) {
  return function.starts_with("Builtins_") || function.starts_with("construct_stub_");
}

// Whether frames that have code are those of scripts.
bool has_scripts(const session::View& view) {
  return view.count(TableId::codes) > 1 && view.header().python.version_hex == 0;
}

Location note(std::string text, bool label = false) {
  Location location;
  location.kind = Location::Kind::note;
  location.label = label;
  location.function = std::move(text);
  return location;
}

}  // namespace

struct Locations::ModuleEntry {
  std::string path;
  std::string build_id;
  bool interpreter = false;
  bool unreadable = false;
  std::shared_ptr<CachedSymbols> symbols;
};

Locations::Locations(const Recording& recording, StoredSymbols stored,
                     std::shared_ptr<const CacheDirectory> cache)
    : recording_(recording),
      stored_(std::move(stored)),
      generated_(recording),
      cache_(std::move(cache)) {
  locations_.emplace_back();  // 0: none
  modules_.push_back(std::make_unique<ModuleEntry>());
}

Locations::~Locations() = default;

std::uint32_t Locations::module(std::uint32_t id) {
  const auto [known, is_new] = module_of_id_.try_emplace(id, 0);
  session::Module row{};
  if (!is_new || id == 0 || !recording_.view().read(TableId::modules, id, row))
    return known->second;
  auto entry = std::make_unique<ModuleEntry>();
  const std::size_t id_bytes = std::min<std::size_t>(row.build_id_bytes, sizeof row.build_id);
  const std::span<const std::uint8_t> build_id{row.build_id, id_bytes};
  entry->path = recording_.text(row.path);
  entry->build_id = hexadecimal(build_id);
  const auto [found, is_first] =
      module_of_file_.try_emplace(entry->path + '\x1f' + entry->build_id, modules_.size());
  known->second = found->second;
  if (!is_first) return found->second;
  entry->interpreter = text::is_interpreter(entry->path);
  // Only a build id ties a file to a recording. Without one, a forged recording could make root
  // reveal the names in a file that its owner may not read.
  const bool is_tied = id_bytes != 0 || recording_.owner() == geteuid();
  const auto open = [&](const std::string& path) {
    entry->symbols = CachedSymbols::open(path, build_id, entry->build_id, cache_);
  };
  if (is_tied) open(entry->path);
  // The modules of a process in a container are in its root.
  if (const std::string root = root_of_process(recording_.path());
      entry->symbols == nullptr && id_bytes != 0 && !root.empty())
    open(root + entry->path);
  entry->unreadable = entry->symbols == nullptr && entry->path.starts_with('/');
  modules_.push_back(std::move(entry));
  return found->second;
}

void Locations::forget_numbers() {
  by_frame_.clear();
  module_of_id_.clear();
}

std::vector<Location> Locations::native_locations(std::uint64_t frame) {
  const std::uint32_t id = session::module_of(frame);
  const std::uint64_t offset = session::offset_of(frame);
  const std::uint32_t names = module(id);
  ModuleEntry& from = *modules_[names];
  // A return address is that of the instruction after the call; the byte before belongs to the
  // call.
  const std::uint64_t address = session::is_exact(frame) || offset == 0 ? offset : offset - 1;
  std::vector<LineInfo> lines;
  if (from.symbols != nullptr) lines = from.symbols->find(address);
  if (lines.empty()) lines = stored_.find(from.build_id, offset);
  if (lines.empty() && id == 0) lines = generated_.find(address);
  // A name confirms what the walk guessed.
  const bool is_generated = id == 0 && !lines.empty();
  if (lines.empty()) lines.emplace_back();

  std::vector<Location> locations;
  for (LineInfo& line_info : lines) {
    Location location;
    location.function = std::move(line_info.function);
    location.file = std::move(line_info.file);
    location.line = line_info.line;
    location.inlined = line_info.inlined;
    location.guessed = session::is_guessed(frame) && !is_generated;
    // What a map of functions leaves out is glue, too, and what LuaJIT has compiled, whose
    // functions have frames of their own.
    const bool is_glue = is_generated ? names::generated_name(location.function).is_glue
                         : id == 0    ? stored_.has_generated_code() || generated_.has_names() ||
                                         has_scripts(recording_.view())
                                   : is_interpreter_glue(location.function);
    location.interpreter = from.interpreter || is_glue;
    location.script = is_generated && !is_glue;
    location.module = from.path.empty() ? 0 : id;
    location.names = from.path.empty() ? 0 : names;
    location.offset = offset;
    locations.push_back(std::move(location));
  }
  return locations;
}

Location Locations::code_location(std::uint64_t frame) const {
  Location location;
  location.script = session::kind_of(frame) == FrameKind::script;
  if (!location.script) location.kind = Location::Kind::python;
  session::Code code{};
  if (!recording_.view().read(TableId::codes, session::code_of(frame), code)) return location;
  location.function = recording_.text(code.name);
  location.file = recording_.text(code.file);
  location.line = text::line_of(recording_.view(), code, frame);
  return location;
}

// Addresses on the same line of the same function share a location. Without a name, each address is
// a location.
LocationId Locations::intern(Location location) {
  const bool named = !location.function.empty() || !location.file.empty();
  const bool is_native = location.kind == Location::Kind::native;
  const bool is_address = !named || (is_native && location.line == 0 && location.function.empty());
  const std::uint64_t numbers[] = {
      static_cast<std::uint64_t>(location.kind) | std::uint64_t{location.inlined} << 8 |
          std::uint64_t{location.guessed} << 9 | std::uint64_t{location.line} << 32,
      is_native ? location.names : 0, is_address ? location.offset : 0};
  std::string key{reinterpret_cast<const char*>(numbers), sizeof numbers};
  key.append(location.function).append(1, '\x1f').append(location.file);
  const auto [at, is_new] =
      ids_.try_emplace(std::move(key), static_cast<LocationId>(locations_.size()));
  if (is_new) locations_.push_back(std::move(location));
  return at->second;
}

const std::vector<LocationId>& Locations::of_frame(std::uint64_t frame) {
  const auto [at, is_new] = by_frame_.try_emplace(frame);
  if (!is_new) return at->second;
  std::vector<LocationId> ids;
  switch (session::kind_of(frame)) {
    case FrameKind::native:
      for (Location& location : native_locations(frame)) ids.push_back(intern(std::move(location)));
      break;
    case FrameKind::python:
    case FrameKind::script:
      ids.push_back(intern(code_location(frame)));
      break;
    default:
      switch (session::special_of(frame)) {
        case SpecialFrame::truncated:
          ids.push_back(intern(note(std::string{kCutStack})));
          break;
        case SpecialFrame::object_pool:
          ids.push_back(
              intern(note(recording_.header().python.source == session::ObjectSource::own_heap
                              ? "[Python's heap: free, or lost to rounding]"
                              : "[Python's pool of small objects: free, or lost to rounding]")));
          break;
        case SpecialFrame::inherited:
          ids.push_back(intern(note("[inherited from the parent process]")));
          break;
        case SpecialFrame::forgotten:
          ids.push_back(intern(note("[forgotten stacks]")));
          break;
        case SpecialFrame::preexisting:
          ids.push_back(intern(note("[before attaching]")));
          break;
        case SpecialFrame::context:
          ids.push_back(intern(
              note("[" + recording_.text(static_cast<session::StringId>(frame)) + "]", true)));
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

LocationId Locations::managed_heap(names::ManagedHeap heap) {
  return intern(note(fmt::format("[the {} heap: objects of the program, or free]",
                                 heap == names::ManagedHeap::java ? "Java" : "Go")));
}

std::vector<LocationId> Locations::of_stack(std::uint32_t node) {
  std::vector<LocationId> stack;
  recording_.view().walk(node, [&](std::uint64_t frame) {
    const std::vector<LocationId>& ids = of_frame(frame);
    stack.insert(stack.end(), ids.begin(), ids.end());
  });
  return stack;
}

LocationId Locations::of_json(const Json& frame) {
  Location location;
  const bool python = text_of(frame, "kind") == "python";
  location.kind = python ? Location::Kind::python : Location::Kind::native;
  location.function = text_of(frame, "function").value_or("");
  location.file = text_of(frame, "file").value_or("");
  location.line = static_cast<std::uint32_t>(number_of(frame, "line").value_or(0));
  location.offset = number_of(frame, "offset").value_or(0);
  const std::string module = text_of(frame, "module").value_or("");
  if (!python && location.function.empty() && !module.empty())
    location =
        note(fmt::format("[{}+{:#x}]", module.substr(module.rfind('/') + 1), location.offset));
  return intern(std::move(location));
}

const std::string& Locations::module_path(const Location& location) const {
  return modules_[location.names]->path;
}

const std::string& Locations::build_id(const Location& location) const {
  return modules_[location.names]->build_id;
}

std::vector<std::string> Locations::unreadable_modules() const {
  std::vector<std::string> paths;
  for (const auto& entry : modules_) {
    if (entry->unreadable) paths.push_back(entry->path);
  }
  std::ranges::sort(paths);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

}  // namespace oomrec::tools::recording
