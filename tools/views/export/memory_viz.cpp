// A pickle as torch.cuda.memory._dump_snapshot writes it, for https://pytorch.org/memory_viz and
// `python -m torch.cuda._memory_viz`: segments and their blocks, and what happened on each device.
//
// The host is the device behind the GPUs.
#include <unordered_map>
#include <unordered_set>

#include "tools/base/text.h"
#include "tools/views/export/event_rows.h"
#include "tools/views/export/format.h"
#include "tools/views/export/pickle_writer.h"
#include "tools/views/export/rows.h"
#include "tools/views/export/segments.h"

namespace oomrec::tools::views {
namespace {

class Snapshot {
 public:
  Snapshot(const Exported& exported, Output& output)
      : exported_(exported),
        recording_(exported.recording()),
        host_(host_index(recording_)),
        pickle_(output) {}

  void write() {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    if (exported_.wants(What::holders))
      for (const Segment& segment : segments_of(recording_)) write_segment(segment);
    pickle_.end_list();
    pickle_.text("device_traces");
    write_traces();
    pickle_.end_dict();
    pickle_.end();
  }

 private:
  void write_segment(const Segment& segment) {
    std::uint64_t active = 0;
    for (const SegmentBlock& block : segment.blocks) active += block.active ? block.bytes : 0;
    constexpr std::uint64_t kSmallSegment = 2 << 20;  // PyTorch's own are that large
    pickle_.begin_dict();
    entry("device", segment.device);
    entry("address", segment.address);
    entry("total_size", segment.bytes);
    for (const std::string_view size : {"allocated_size", "active_size", "requested_size"})
      entry(size, active);
    entry("stream", 0);
    pickle_.entry("segment_type", segment.bytes <= kSmallSegment ? "small" : "large");
    pickle_.text("segment_pool_id");
    pickle_.pair(0, 0);
    write_frames(segment.node);
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const SegmentBlock& block : segment.blocks) {
      pickle_.begin_dict();
      entry("address", block.address);
      entry("size", block.bytes);
      entry("requested_size", block.active ? block.bytes : 0);
      pickle_.entry("state", block.active ? "active_allocated" : "inactive");
      write_frames(block.node);
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write_traces() {
    std::vector<std::vector<EventRow>> traces(host_ + 1);
    if (exported_.wants(What::events)) {
      for (EventRow& row : event_rows(recording_)) {
        const bool host = is_on_host(row.space);
        // Address space is no memory; tensors of the host are in its heap.
        if (is_address_space(row.space) || (row.space == Space::torch && row.device == 0)) continue;
        traces[host ? host_ : device_index(recording_, row.device)].push_back(std::move(row));
      }
    }
    pickle_.begin_list();
    for (const std::vector<EventRow>& trace : traces) {
      others_.clear();
      pickle_.begin_list();
      for (const EventRow& row : trace) write_event(row);
      pickle_.end_list();
    }
    pickle_.end_list();
  }

  void write_event(const EventRow& row) {
    const std::uint64_t address = row.address;
    if (row.refused()) return write_refusal(row);
    const bool of_driver = row.space == Space::cuda || row.space == Space::hip;
    if (row.released()) {
      if (!of_driver || others_.erase(address) != 0) {
        write_action(row, "free_requested");
        write_action(row, "free_completed");
      }
      if (of_driver) write_action(row, "segment_free");
      return;
    }
    if (of_driver) write_action(row, "segment_alloc");
    if (of_driver && is_taken_by_torch(recording_, row.api, row.node)) return;
    if (of_driver) others_.insert(address);
    write_action(row, "alloc");
  }

  void write_action(const EventRow& row, std::string_view action) {
    begin_action(row, action);
    entry("addr", row.address);
    pickle_.end_dict();
  }

  void write_refusal(const EventRow& row) {
    begin_action(row, "oom");
    entry("device_free", row.device_free);
    pickle_.end_dict();
  }

  void begin_action(const EventRow& row, std::string_view action) {
    pickle_.begin_dict();
    pickle_.entry("action", action);
    entry("size", row.bytes);
    entry("stream", 0);
    entry("time_us", row.realtime_ns / 1000);
    write_frames(row.node);
  }

  void entry(std::string_view key, std::uint64_t value) {
    pickle_.entry(key, static_cast<std::int64_t>(value));
  }

  // Innermost first. Each stack and each frame is written once.
  void write_frames(std::uint32_t node) {
    pickle_.text("frames");
    const recording::StackId stack = node != 0 ? exported_stack(exported_.stacks, node) : 0;
    const auto known = stacks_.find(stack);
    if (known != stacks_.end()) return pickle_.again(known->second);
    pickle_.begin_list();
    for (const recording::PlaceId place : exported_.stacks.places(stack)) write_frame(place);
    pickle_.end_list();
    stacks_[stack] = pickle_.remember();
  }

  void write_frame(recording::PlaceId id) {
    const auto known = frames_.find(id);
    if (known != frames_.end()) return pickle_.again(known->second);
    const recording::Places& places = exported_.places();
    const recording::Place& place = places[id];
    const bool python = place.kind == recording::Place::Kind::python && !place.function.empty();
    const std::string file = place.file.empty() ? places.module_path(place) : place.file;
    pickle_.begin_dict();
    pickle_.entry("filename", printable(file));
    pickle_.entry("line", place.line);
    pickle_.entry("name",
                  python ? clip(printable(place.function), kLongestName) : frame_name(places, id));
    pickle_.end_dict();
    frames_[id] = pickle_.remember();
  }

  const Exported& exported_;
  const recording::Recording& recording_;
  const std::size_t host_;
  PickleWriter pickle_;
  std::unordered_map<recording::StackId, PickleWriter::Reference> stacks_;
  std::unordered_map<recording::PlaceId, PickleWriter::Reference> frames_;
  std::unordered_set<std::uint64_t> others_;  // segments that are not PyTorch's
};

}  // namespace

void write_memory_viz(const Exported& exported, Output& output) {
  Snapshot{exported, output}.write();
}

}  // namespace oomrec::tools::views
