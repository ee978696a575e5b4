// events.json: the latest events of all threads, oldest first, the failed request last.
//
// Each lane's ring is ordered by time. A heap of lanes merges them backwards from the newest
// events; the picked events are then written forwards. Running totals are reconstructed backwards
// from the exact ones. In sampled mode they are approximate, because most events are not recorded.
// The program's other threads continue meanwhile: an overwritten slot is left out.
#include <algorithm>
#include <bit>

#include "common/bundle/accounts.h"
#include "common/bundle/files.h"
#include "common/text/device_text.h"
#include "common/text/frames.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

using session::Event;
using session::Failure;
using session::TableId;
using session::View;

// A failure, as its API names it.
std::string_view result_of(const Failure& failure) noexcept {
  return text::error_name(static_cast<Space>(failure.space), failure.error);
}

// An event's position, packed into one word that sorts by time.
struct Position {
  std::uint32_t lane;
  std::uint64_t number;
};
constexpr unsigned kNumberBits = 48;
constexpr std::uint64_t pack(std::uint64_t lane, std::uint64_t number) noexcept {
  return lane << kNumberBits | (number & ((std::uint64_t{1} << kNumberBits) - 1));
}
constexpr Position unpack(std::uint64_t word) noexcept {
  return {static_cast<std::uint32_t>(word >> kNumberBits),
          word & ((std::uint64_t{1} << kNumberBits) - 1)};
}

class Events {
 public:
  Events(InHook hook, Job& job) noexcept : hook_(hook), job_(job), view_(job.view) {
    view_.read(TableId::failures, job.cause.failure, failure_);
  }

  void pick() noexcept;
  void write(text::JsonWriter& json) noexcept;

 private:
  bool load(std::uint32_t lane, std::uint64_t number, Event& event) noexcept;
  bool previous(std::uint32_t lane, std::uint64_t& number, Event& event) noexcept;
  bool is_listed(const Event& event) const noexcept;
  void write_event(text::JsonWriter& json, const Event& event) noexcept;
  void write_failed_request(text::JsonWriter& json) noexcept;
  void write_common(text::JsonWriter& json, std::uint64_t time_ns, std::string_view type,
                    Space space, std::uint32_t device, std::int64_t change,
                    std::uint32_t stack) noexcept;
  std::string_view label_of_stack(std::uint32_t stack) noexcept;

  InHook hook_;
  Job& job_;
  const View& view_;
  Failure failure_{};
  std::uint32_t loaded_lane_ = 0;
  std::size_t picked_ = 0;
  Accounts accounts_;                 // after the current event
  std::uint32_t labelled_stack_ = 0;  // cached: consecutive events often have the same stack
  std::string_view label_;            // of labelled_stack_
};

bool Events::load(std::uint32_t lane, std::uint64_t number, Event& event) noexcept {
  if (loaded_lane_ != lane && !view_.read(TableId::lanes, lane, job_.work.lane)) return false;
  loaded_lane_ = lane;
  return view_.event(job_.work.lane, number, event);
}

// The failed request of this bundle comes last, from its own record; later events are left out.
bool Events::is_listed(const Event& event) const noexcept {
  const EventKind kind = event.kind;
  if (kind == EventKind::none || kind == EventKind::mark) return false;
  if (job_.cause.failure == 0) return true;
  if (kind == EventKind::fail && event.address == job_.cause.failure) return false;
  const std::uint64_t start = view_.header().start_monotonic_ns;
  return start + std::uint64_t{event.time_ms} * 1'000'000 <= failure_.time_ns + 1'000'000;
}

// The newest listed event of `lane` before `number`.
bool Events::previous(std::uint32_t lane, std::uint64_t& number, Event& event) noexcept {
  if (loaded_lane_ != lane && !view_.read(TableId::lanes, lane, job_.work.lane)) return false;
  loaded_lane_ = lane;
  const std::uint64_t slots = job_.work.lane.ring_slots;
  const std::uint64_t next = job_.work.lane.ring_next.load(std::memory_order_relaxed);
  while (number != 0 && next - (number - 1) <= slots) {
    --number;
    if (view_.event(job_.work.lane, number, event) && is_listed(event)) return true;
  }
  return false;
}

void Events::pick() noexcept {
  // work.sort holds three arrays: the picked events; a heap of lanes by the time of their newest
  // unpicked event; that event's number, by lane. Lanes beyond the arrays are left out.
  const std::size_t wanted = kMaxEvents - (job_.cause.failure != 0 ? 1 : 0);
  std::uint64_t* const picked = job_.work.sort;
  const std::size_t max_lanes = (std::size(job_.work.sort) - kMaxEvents) / 2;
  std::uint64_t* const heap = picked + kMaxEvents;
  std::uint64_t* const numbers = heap + max_lanes;
  std::size_t heap_size = 0;

  const auto lanes = std::min<std::uint64_t>(view_.count(TableId::lanes), max_lanes);
  Event event;
  for (std::uint32_t lane = 1; lane < lanes; ++lane) {
    if (!view_.read(TableId::lanes, lane, job_.work.lane)) continue;
    loaded_lane_ = lane;
    numbers[lane] = job_.work.lane.ring_next.load(std::memory_order_relaxed);
    if (previous(lane, numbers[lane], event))
      heap[heap_size++] = std::uint64_t{event.time_ms} << 32 | lane;
  }
  std::make_heap(heap, heap + heap_size);
  accounts_.load(view_);

  while (heap_size != 0 && picked_ < wanted) {
    std::pop_heap(heap, heap + heap_size);
    const auto lane = static_cast<std::uint32_t>(heap[heap_size - 1]);
    picked[picked_++] = pack(lane, numbers[lane]);
    if (load(lane, numbers[lane], event)) accounts_.revert(event);
    if (previous(lane, numbers[lane], event)) {
      heap[heap_size - 1] = std::uint64_t{event.time_ms} << 32 | lane;
      std::push_heap(heap, heap + heap_size);
    } else {
      --heap_size;
    }
  }
  std::reverse(picked, picked + picked_);
}

std::string_view Events::label_of_stack(std::uint32_t stack) noexcept {
  if (stack != labelled_stack_) {
    labelled_stack_ = stack;
    label_ = text::label_of(view_, stack);
  }
  return label_;
}

void Events::write_common(text::JsonWriter& json, std::uint64_t time_ns, std::string_view type,
                          Space space, std::uint32_t entry, std::int64_t change,
                          std::uint32_t stack) noexcept {
  const Account& account = accounts_.of(space, entry);
  session::Device device;
  const bool known = !is_on_host(space) && text::read_device(view_, entry, device);
  json.key("timestamp").fraction(realtime_of(view_, time_ns) / 1'000'000, 3);
  json.key("event_type").string(type);
  json.key("memory_allocated").signed_number(account.allocated());
  json.key("memory_reserved").signed_number(account.reserved());
  json.key("memory_change").signed_number(change);
  json.key("device_id").signed_number(known ? device.ordinal : -1);
  json.key("context").string_or_null(label_of_stack(stack));
  json.key("backend").string(backend_of(view_, space, entry));
  json.key("space").string(name_of(space));
}

void Events::write_event(text::JsonWriter& json, const Event& event) noexcept {
  const EventKind kind = event.kind;
  const bool failed = kind == EventKind::fail;
  const bool released = kind == EventKind::free || kind == EventKind::unmap;
  Failure failure{};
  if (failed) view_.read(TableId::failures, event.address, failure);
  const Space space = failed ? static_cast<Space>(failure.space) : event.space;
  const std::uint32_t device = failed ? failure.device.device : event.device;
  const std::uint64_t time_ns =
      view_.header().start_monotonic_ns + std::uint64_t{event.time_ms} * 1'000'000;
  const session::Thread thread = view_.thread_at(event.thread, time_ns);
  accounts_.apply(event);

  json.begin_object(text::JsonLayout::one_line);
  write_common(json, time_ns,
               failed     ? "error"
               : released ? "deallocation"
                          : "allocation",
               space, device, change_of(event), event.stack);
  json.key("kind").string(name_of(kind));
  json.key("address");
  failed ? json.null() : json.number(event.address);
  json.key("size").number(event.bytes);
  json.key("stack");
  event.stack == 0 ? json.null() : json.number(event.stack);
  json.key("thread");
  thread.tid == 0 ? json.null() : json.signed_number(thread.tid);
  json.key("api").string(name_of(event.api));
  json.key("result").string_or_null(failed ? result_of(failure) : "ok");
  json.end_object();
}

void Events::write_failed_request(text::JsonWriter& json) noexcept {
  session::Thread thread{};
  view_.read(TableId::threads, failure_.thread, thread);
  json.begin_object(text::JsonLayout::one_line);
  write_common(json, failure_.time_ns, "error", static_cast<Space>(failure_.space),
               failure_.device.device, 0, failure_.node);
  json.key("kind").string("fail");
  json.key("address").null();
  json.key("size").number(failure_.bytes);
  json.key("stack");
  failure_.node == 0 ? json.null() : json.number(failure_.node);
  json.key("thread");
  thread.tid == 0 ? json.null() : json.signed_number(thread.tid);
  json.key("api").string(name_of(static_cast<Api>(failure_.api)));
  json.key("result").string_or_null(result_of(failure_));
  json.end_object();
}

void Events::write(text::JsonWriter& json) noexcept {
  json.begin_array();
  Event event;
  for (std::size_t i = 0; i < picked_; ++i) {
    const Position at = unpack(job_.work.sort[i]);
    if (!load(at.lane, at.number, event)) continue;
    write_event(json, event);
    ++job_.event_count;
  }
  if (job_.cause.failure != 0) {
    write_failed_request(json);
    ++job_.event_count;
  }
  json.end_array();
}

}  // namespace

bool write_events(InHook hook, Job& job) noexcept {
  Events events{hook, job};
  if (job.reduction == Reduction::none) events.pick();
  JsonFile file{hook, job, "events.json"};
  events.write(file.json());
  return file.done();
}

}  // namespace oomrec::bundle
