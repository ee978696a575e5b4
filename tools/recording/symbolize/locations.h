// Symbolizes the frames of a recording: maps frame words to ids of distinct locations.
//
// A native frame is symbolized with its module's file if that is still the same build, else with
// the bundle's stored symbols, else as module and offset. It may yield several locations: those of
// functions inlined at that address. The line of a Python frame comes from its code's line table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/names/library_functions.h"
#include "tools/base/json.h"
#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/cache_directory.h"
#include "tools/recording/symbolize/cached_symbols.h"
#include "tools/recording/symbolize/generated_code.h"

namespace oomrec::tools::recording {

// One line of a displayed stack.
struct Location {
  enum class Kind : std::uint8_t { native, python, note };
  Kind kind = Kind::native;
  bool inlined = false;
  bool guessed = false;      // found by scanning the stack, without unwind information
  bool interpreter = false;  // native code of an interpreter, Python's or another one's
  bool script = false;       // a function in another language, compiled at run time
  bool label = false;        // a note that is the program's own text
  std::uint32_t line = 0;    // 0: unknown
  std::uint32_t module = 0;  // entry in `modules`; 0: unknown
  std::uint32_t names = 0;   // for Locations: what that entry was when it was read; 0: unknown
  std::uint64_t offset = 0;
  std::string function;  // empty: unknown
  std::string file;      // empty: unknown

  // A function of a language that the process runs, not of the process' own machine code.
  bool is_script() const { return kind == Kind::python || script; }
  // That counts as a line of its file.
  bool is_line() const { return kind == Kind::python || (script && !file.empty()); }
};

using LocationId = std::uint32_t;

// The note further out than all frames of a stack that was cut.
inline constexpr std::string_view kCutStack = "[frames further out were not recorded]";

class Locations {
 public:
  // `stored` is empty without a symbols.json. `cache`: symbols that earlier commands found;
  // nullptr: none. The recording must outlive this.
  Locations(const Recording& recording, StoredSymbols stored,
            std::shared_ptr<const CacheDirectory> cache = nullptr);
  ~Locations();

  // The locations of a frame word, innermost first; none for the frame of the thread group.
  const std::vector<LocationId>& of_frame(std::uint64_t frame);

  // The locations of a stack, innermost first.
  std::vector<LocationId> of_stack(std::uint32_t node);

  // The note in place of a runtime's functions that commit a part of its heap.
  LocationId managed_heap(names::ManagedHeap);

  // The location of a FRAME in a bundle's JSON (docs/json.md).
  LocationId of_json(const Json& frame);

  // Entries of modules and code objects may be other ones' by now, of a living process. What was
  // found so far stays as it is.
  void forget_numbers();

  const Location& operator[](LocationId id) const { return locations_[id]; }
  std::size_t size() const { return locations_.size(); }

  const std::string& module_path(const Location& location) const;
  const std::string& build_id(const Location& location) const;  // hexadecimal; empty: unknown

  // Modules whose file is now another build, or is gone: it cannot symbolize their functions.
  std::vector<std::string> unreadable_modules() const;

 private:
  struct ModuleEntry;
  // The number in `modules_` of the entry with this id.
  std::uint32_t module(std::uint32_t id);
  std::vector<Location> native_locations(std::uint64_t frame);
  Location code_location(std::uint64_t frame) const;
  LocationId intern(Location location);

  const Recording& recording_;
  StoredSymbols stored_;
  GeneratedCode generated_;
  std::shared_ptr<const CacheDirectory> cache_;
  std::vector<Location> locations_;
  std::unordered_map<std::string, LocationId> ids_;
  std::unordered_map<std::uint64_t, std::vector<LocationId>> by_frame_;
  std::vector<std::unique_ptr<ModuleEntry>> modules_;  // 0: unknown
  std::unordered_map<std::uint32_t, std::uint32_t> module_of_id_;
  std::unordered_map<std::string, std::uint32_t> module_of_file_;  // by path and build-id
};

}  // namespace oomrec::tools::recording
