// A recording in memory: a bundle's recording.oomrec, or the session of a process, alive or dead.
//
// The file is copied, so that one that is cut or changed under us costs nothing but its own sense
// (the live view, which reads the same session again and again, maps it:
// tools/recording/live/mapping.h); it is at most kMaxSegments × kSegmentBytes long. Whatever is
// read through view() is checked there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/session/view.h"

namespace oomrec::tools::recording {

// A stack with what it held. Bytes are bytes asked for.
struct HolderFigures {
  std::uint32_t node = 0;
  Space space = Space::heap;
  Api api = Api::none;
  bool estimated = false;
  std::uint64_t live_bytes = 0, live_count = 0;
  std::uint64_t peak_bytes = 0, peak_count = 0;  // when the space was largest
  std::uint64_t total_bytes = 0, total_count = 0;
  std::uint32_t entry = 0;  // in `holders`
  std::uint64_t temporary_count =
      0;  // freed before their thread's next allocation; exact mode only
  // Birth of the oldest live block, by the session's clock, to the second; nothing until
  // add_ages(), and where its blocks are not in the recording.
  std::optional<std::uint64_t> oldest_ns;
};

// What a space came to. Live bytes are usable bytes, allocated ones bytes asked for.
struct SpaceTotals {
  std::uint64_t live_bytes = 0, live_count = 0;
  std::uint64_t allocated_bytes = 0, allocated_count = 0;
};

const std::vector<Space>& spaces_that_add_up();  // adds_up()

class Recording {
 public:
  // Throws Error with bad_input when there is no such file or no session in it.
  explicit Recording(const std::filesystem::path& file);

  // Of a session in memory: made of `file`, or `file` itself, which is mapped and written on by its
  // process. Nothing is copied, and figures are those of the moment they are read. Throws as above.
  Recording(const std::filesystem::path& file, std::shared_ptr<const std::byte> session,
            std::uint64_t bytes);

  const session::View& view() const { return view_; }
  const session::Header& header() const { return view_.header(); }
  const std::filesystem::path& path() const { return path_; }

  std::vector<HolderFigures> holders() const;

  // Fills in oldest_ns of rows that holders() gave. Cost: a look at every live block.
  void add_ages(std::vector<HolderFigures>& rows) const;

  // Header::command_line, taken apart.
  std::vector<std::string> arguments() const;
  std::string text(session::StringId id) const { return std::string{view_.string(id)}; }
  std::uint64_t event_count() const;  // recorded with their stack, also those no longer kept
  Mode mode_now() const;
  bool estimated() const { return mode_now() == Mode::sampled; }

  // The last moment that the recording knows of, by the session's clock.
  std::uint64_t end_ns() const;

  // Realtime of a moment of the session's clock, in nanoseconds since 1970.
  std::uint64_t realtime_of(std::uint64_t monotonic_ns) const;

  // High-water mark of the spaces that add up: the highest of all points of the time line, and of
  // now.
  std::uint64_t peak_bytes() const;
  std::uint64_t peak_bytes(Space space) const;
  // Live figures are sums over threads that ran on while they were read: never below zero here.
  SpaceTotals totals(Space space) const;
  std::uint64_t held_bytes() const;  // live in all spaces that add up

 private:
  void look_at(std::uint64_t bytes);  // throws Error where they are no session

  std::filesystem::path path_;
  std::shared_ptr<const std::byte> bytes_;
  session::View view_;
};

}  // namespace oomrec::tools::recording
