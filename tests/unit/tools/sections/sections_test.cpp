// Devices and notes of a page.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/tools/readable_image.h"
#include "tools/sections/devices.h"
#include "tools/sections/holders.h"
#include "tools/sections/notes.h"

using namespace oomrec::tools;
using namespace oomrec;

// --- The text of a GPU, and the groups of holders

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

recording::DeviceFigures training() {
  recording::DeviceFigures device;
  device.label = "cuda:1";
  device.name = "Card";
  device.held_bytes = 10 * kGiB;
  device.managed_bytes = kGiB;
  device.driver_sample = {1500, 4 * kGiB, 24 * kGiB};
  device.torch = {6 * kGiB, 8 * kGiB, kGiB / 2};
  return device;
}

bool has(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("memory that the driver counts and the recording does not belongs to others") {
  recording::DeviceFigures device = training();
  CHECK(device.others_bytes() == 9 * kGiB);  // 20 used, 10 held, 1 managed
  device.managed_bytes = 40 * kGiB;          // all of it has moved to the host
  CHECK(device.others_bytes() == 0);
  device.driver_sample.reset();
  CHECK(device.others_bytes() == 0);
  CHECK(sections::device_json(device)["others_bytes"].is_null());
  CHECK(has(sections::device_text(device), "no free-memory figure"));
}

TEST_CASE("fragmentation is the share of reserved memory that is not allocated") {
  recording::DeviceFigures::Torch torch{7 * kGiB, 10 * kGiB, {}};
  CHECK(torch.fragmentation_ratio() == doctest::Approx(0.3));
  torch.allocated_bytes = 11 * kGiB;  // reported before the reserved bytes were updated
  CHECK(torch.fragmentation_ratio() == 0);
  CHECK(recording::DeviceFigures::Torch{}.fragmentation_ratio() == 0);

  recording::DeviceFigures device = training();
  CHECK(has(sections::device_text(device), "0.25"));
  CHECK_FALSE(has(sections::device_text(device), "warning"));
  device.torch->allocated_bytes = 5 * kGiB;
  CHECK(has(sections::device_text(device), "warning"));
  device.torch->allocated_bytes = 4 * kGiB;
  CHECK(has(sections::device_text(device), "critical"));
}

TEST_CASE("a line of a device is no wider than a page") {
  recording::DeviceFigures device = training();
  device.limit_bytes = device.held_bytes = device.peak_bytes = 1000 * kGiB;
  device.pool_reserved_bytes = device.pool_used_bytes = 1000 * kGiB;
  device.driver_sample = {1'234'500, 1000 * kGiB, 1000 * kGiB};
  device.uuid = "GPU-fa4ecd01-9d3c-4b71-8e25-6fd013a75800";
  const std::string text = sections::device_text(device);
  std::size_t lines = 0;
  for (std::size_t from = 0, to = 0; (to = text.find('\n', from)) != std::string::npos;
       from = to + 1, ++lines)
    CHECK(to - from <= 100);
  CHECK(lines >= 9);
}

TEST_CASE("PyTorch's tensors and address space are separate groups") {
  const std::vector<recording::StackFigures> rows = {
      {1, Space::cuda_va, false, 64 * kGiB, 1}, {2, Space::torch, false, 9 * kGiB, 9},
      {3, Space::cuda, false, 8 * kGiB, 4},     {4, Space::heap, false, 2 * kGiB, 1},
      {5, Space::torch, false, kGiB, 1},
  };
  const std::vector<sections::HolderGroup> groups = sections::holder_groups(rows);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].bytes() == 10 * kGiB);
  CHECK(groups[0].rows[0].stack == 3);
  CHECK(groups[1].bytes() == 10 * kGiB);
  CHECK(groups[1].rows.size() == 2);
  CHECK(groups[2].bytes() == 64 * kGiB);
  CHECK(sections::holder_groups(std::vector<recording::StackFigures>{}).size() == 1);
}

// --- Notes: what a reader must know beside the figures

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
