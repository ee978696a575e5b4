// A pickle like that of torch.cuda.memory._dump_snapshot, for https://pytorch.org/memory_viz and
// `python -m torch.cuda._memory_viz`: segments with their blocks, and the events on each device.
//
// The host is an additional device after the GPUs.
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
  Snapshot(const ExportRequest& request, Output& output)
      : request_(request),
        recording_(request.recording()),
        host_(host_index(recording_)),
        pickle_(output) {}

  void write() {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    if (request_.wants(Content::holders))
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
    constexpr std::uint64_t kSmallSegment = 2 << 20;  // as in PyTorch's allocator
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
    if (request_.wants(Content::events)) {
      for (const EventRow& row : event_rows(recording_)) {
        const bool host = is_on_host(row.space);
        // Address space is no memory, and the host's tensors are already in its heap.
        if (is_address_space(row.space) || (row.space == Space::torch && row.device == 0)) continue;
        traces[host ? host_ : device_index(recording_, row.device)].push_back(row);
      }
    }
    pickle_.begin_list();
    for (const std::vector<EventRow>& trace : traces) {
      foreign_segments_.clear();
      pickle_.begin_list();
      for (const EventRow& row : trace) write_event(row);
      pickle_.end_list();
    }
    pickle_.end_list();
  }

  void write_event(const EventRow& row) {
    const std::uint64_t address = row.address;
    if (row.is_failure()) return write_failure(row);
    const bool from_driver = row.space == Space::cuda || row.space == Space::hip;
    if (row.is_release()) {
      if (!from_driver || foreign_segments_.erase(address) != 0) {
        write_action(row, "free_requested");
        write_action(row, "free_completed");
      }
      if (from_driver) write_action(row, "segment_free");
      return;
    }
    if (from_driver) write_action(row, "segment_alloc");
    if (from_driver && is_pytorch_segment(recording_, row.api, row.node)) return;
    if (from_driver) foreign_segments_.insert(address);
    write_action(row, "alloc");
  }

  void write_action(const EventRow& row, std::string_view action) {
    begin_action(row, action);
    entry("addr", row.address);
    pickle_.end_dict();
  }

  void write_failure(const EventRow& row) {
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

  // Innermost first. Each stack and each frame is written once, then referred to.
  void write_frames(std::uint32_t node) {
    pickle_.text("frames");
    const recording::StackId stack = node != 0 ? exported_stack(request_.stacks, node) : 0;
    const auto written = stacks_.find(stack);
    if (written != stacks_.end()) return pickle_.get(written->second);
    pickle_.begin_list();
    for (const recording::LocationId location : request_.stacks.locations(stack))
      write_frame(location);
    pickle_.end_list();
    stacks_[stack] = pickle_.memoize();
  }

  void write_frame(recording::LocationId id) {
    const auto written = frames_.find(id);
    if (written != frames_.end()) return pickle_.get(written->second);
    const recording::Locations& locations = request_.locations();
    const recording::Location& location = locations[id];
    const bool python =
        location.kind == recording::Location::Kind::python && !location.function.empty();
    const std::string file =
        location.file.empty() ? locations.module_path(location) : location.file;
    pickle_.begin_dict();
    pickle_.entry("filename", printable(file));
    pickle_.entry("line", location.line);
    pickle_.entry("name", python ? clip(printable(location.function), kLongestName)
                                 : frame_name(locations, id));
    pickle_.end_dict();
    frames_[id] = pickle_.memoize();
  }

  const ExportRequest& request_;
  const recording::Recording& recording_;
  const std::size_t host_;
  PickleWriter pickle_;
  std::unordered_map<recording::StackId, PickleWriter::Reference> stacks_;
  std::unordered_map<recording::LocationId, PickleWriter::Reference> frames_;
  std::unordered_set<std::uint64_t> foreign_segments_;  // not PyTorch's; by address
};

}  // namespace

void write_memory_viz(const ExportRequest& request, Output& output) {
  Snapshot{request, output}.write();
}

}  // namespace oomrec::tools::views
