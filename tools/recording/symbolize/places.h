// Names for the frame words of one recording: each distinct place of the program once.
//
// A native frame is named, in this order, by the file it came from (if that still is the same
// build), by what the bundle stored, by nothing but module and offset. It may be several places:
// functions inlined at that address. A Python frame's line is decoded from its code's line table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/cache_directory.h"
#include "tools/recording/symbolize/stored_symbols.h"

namespace oomrec::tools::recording {

// One line of a stack as it is shown.
struct Place {
  enum class Kind : std::uint8_t { native, python, note };
  Kind kind = Kind::native;
  bool inlined = false;
  bool guessed = false;      // found without call frame information
  bool interpreter = false;  // native code of the Python interpreter
  std::uint32_t line = 0;    // 0: unknown
  std::uint32_t module = 0;  // entry in `modules`; 0: unknown
  std::uint64_t offset = 0;
  std::string function;  // empty: unknown
  std::string file;      // empty: unknown
};

using PlaceId = std::uint32_t;

class Places {
 public:
  // `stored` may be empty: no symbols.json. `cache`: of names that earlier commands found, if one
  // is to be used. The recording must outlive this.
  Places(const Recording& recording, StoredSymbols stored,
         std::shared_ptr<const CacheDirectory> cache = nullptr);
  ~Places();

  // The places of a frame word, innermost first; none for the frame that names the thread group.
  const std::vector<PlaceId>& of_frame(std::uint64_t frame);

  // The places of a stack, innermost first.
  std::vector<PlaceId> of_stack(std::uint32_t node);

  // The place that a FRAME of a bundle's JSON tells (docs/json.md).
  PlaceId of_json(const Json& frame);

  const Place& operator[](PlaceId id) const { return places_[id]; }
  std::size_t size() const { return places_.size(); }

  std::string module_path(const Place& place) const;
  std::string build_id(const Place& place) const;  // hexadecimal; empty: unknown

  // Modules whose file is another build now, or gone: their functions have no names of their own.
  std::vector<std::string> unreadable_modules() const;

 private:
  struct ModuleEntry;
  ModuleEntry& module(std::uint32_t id);
  std::vector<Place> native_places(std::uint64_t frame);
  Place python_place(std::uint64_t frame) const;
  PlaceId intern(Place place);

  const Recording& recording_;
  StoredSymbols stored_;
  std::shared_ptr<const CacheDirectory> cache_;
  std::vector<Place> places_;
  std::unordered_map<std::string, PlaceId> ids_;
  std::unordered_map<std::uint64_t, std::vector<PlaceId>> by_frame_;
  std::vector<std::unique_ptr<ModuleEntry>> modules_;
};

}  // namespace oomrec::tools::recording
