// Notes: what a reader must know beside the figures.
#include "tools/sections/notes.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/unit/tools/readable_image.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

// The note with these words; empty: there is none.
std::string note_with(const tests::ReadableImage& image, std::string_view words) {
  for (const std::string& note : sections::notes_of(image.source()))
    if (note.find(words) != note.npos) return note;
  return {};
}

}  // namespace

TEST_CASE("a note says how much of the heap dropped events leave without a holder") {
  tests::ReadableImage image;
  CHECK(note_with(image, "did not fit").empty());
  image.header().dropped_events = 1234;
  auto& lane = image.lane(0, 16);
  auto& allocated = lane.spaces[static_cast<std::size_t>(Space::heap)].usable_allocated_bytes;
  const std::uint64_t before = allocated;
  CHECK(note_with(image, "have no holder").empty());
  allocated = before + (std::uint64_t{1} << 40);
  CHECK(note_with(image, "1,234 events did not fit").find("have no holder") != std::string::npos);
  CHECK(note_with(image, "TiB live in the heap") != "");
  image.header().dropped_events = 0;  // the error of an estimate, perhaps
  CHECK(note_with(image, "have no holder").empty());
}

TEST_CASE("a stack may be cut because there was no space for it") {
  tests::ReadableImage image;
  image.header().truncated_stacks = 2;
  CHECK(note_with(image, "2 stacks were cut").find("no space") != std::string::npos);
}
