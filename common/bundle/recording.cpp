// recording.oomrec: a compact copy of the session in the same format.
//
// Chunks are moved together. Only what the session's table directory lists is read, and the kernel
// reads it (pwrite from the mapping): a missing page makes the copy fail but never faults. The
// header and its counts are copied first, so entries added meanwhile are left out; but full holders
// are copied last, because a holder may have become full meanwhile. If the copy is
// too large for its directory, it is made without event rings, then with only the largest stacks,
// then without checkpoints. Totals, threads, failures, marks and the time line are always complete.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "common/bundle/files.h"
#include "common/bundle/selection.h"
#include "common/system/files.h"

namespace oomrec::bundle {
namespace {

using session::CheckpointRow;
using session::chunk_bytes;
using session::Failure;
using session::Header;
using session::Holder;
using session::kMaxChunks;
using session::kSegmentBytes;
using session::Lane;
using session::Node;
using session::TableDirectory;
using session::TableId;

constexpr std::size_t kLargestStacks = 1000;
constexpr std::uint64_t kOtherFilesBytes = 256 * 1024;  // without recording and events
constexpr std::uint64_t kEventBytes = 330;  // approximate size of one event in events.json

// How Workspace::text is divided while a recording is written.
struct RecordingMemory {
  alignas(Header) char header[session::kHeaderBytes];
  HolderSelection<kLargestStacks> holders;
  std::uint32_t ranks[std::size(Workspace{}.sort) / NodeSelection::kWordsPerRank];
};
static_assert(sizeof(RecordingMemory) <= sizeof(Workspace{}.text) && alignof(RecordingMemory) <= 8);

class Recording {
 public:
  Recording(Job& job, RecordingMemory& memory) noexcept
      : job_(job),
        view_(job.view),
        memory_(memory),
        header_(*reinterpret_cast<Header*>(memory.header)),
        nodes_(job.view, job.work.sort, memory.ranks) {}

  // Computes the layout: afterwards the header has all offsets. Returns the file's size.
  std::uint64_t lay_out(Reduction reduction) noexcept;
  int write(int fd) noexcept;                                          // 0 or minus an errno
  std::uint64_t bytes() const noexcept { return header_.file_bytes; }  // after write()

 private:
  TableDirectory& table(TableId id) noexcept {
    return header_.tables[static_cast<std::size_t>(id)];
  }
  const TableDirectory& source(TableId id) const noexcept {
    return view_.header().tables[static_cast<std::size_t>(id)];
  }
  std::uint64_t reserve(std::uint64_t bytes, std::uint64_t alignment = 8) noexcept;
  void reserve_table(TableId id) noexcept;
  std::uint64_t ring_bytes(const Lane& lane) const noexcept;
  std::uint64_t sums_bytes(const Lane& lane) const noexcept;
  std::uint64_t temporaries_bytes(const Lane& lane) const noexcept;
  std::uint64_t side_bytes(std::uint64_t index, session::SidePage& page) const noexcept;
  void select_largest() noexcept;
  void put(std::uint64_t offset, const void* data, std::uint64_t bytes) noexcept;
  void copy_table(TableId id) noexcept;
  std::uint64_t copy(std::uint64_t offset, std::uint64_t bytes,
                     std::uint64_t alignment = 8) noexcept;
  void copy_side_table() noexcept;
  void copy_full_holders() noexcept;
  void set_file_bytes(std::uint64_t bytes) noexcept {
    header_.file_bytes = bytes;
    header_.used_bytes.store(bytes, std::memory_order_relaxed);
  }
  void copy_lanes() noexcept;
  template <class Entry>
  void rewrite_table(TableId id, Entry&& entry) noexcept;

  Job& job_;
  const session::View& view_;
  RecordingMemory& memory_;
  Header& header_;
  NodeSelection nodes_;
  Reduction reduction_ = Reduction::none;
  std::uint64_t end_ = 0;
  std::uint64_t parts_end_ = 0;  // of rings, sums and pages
  int fd_ = -1;
  int error_ = 0;
  std::uint64_t unflushed_ = 0;
};

constexpr std::uint64_t kFlushBytes = std::uint64_t{1} << 20;

// Reserves bytes of the file; nothing crosses a segment.
std::uint64_t Recording::reserve(std::uint64_t bytes, std::uint64_t alignment) noexcept {
  end_ = (end_ + alignment - 1) & ~(alignment - 1);
  if (end_ / kSegmentBytes != (end_ + bytes - 1) / kSegmentBytes)
    end_ = (end_ / kSegmentBytes + 1) * kSegmentBytes;
  const std::uint64_t offset = end_;
  end_ += bytes;
  return offset;
}

void Recording::reserve_table(TableId id) noexcept {
  TableDirectory& directory = table(id);
  std::uint64_t left = directory.committed.load(std::memory_order_relaxed);
  for (std::uint32_t k = 0; k < kMaxChunks; ++k) {
    std::uint64_t offset = 0;
    if (left != 0) {
      const std::uint64_t capacity = chunk_bytes(k) / directory.entry_bytes;
      const std::uint64_t entries = std::min(left, capacity);
      offset = reserve(entries * directory.entry_bytes);
      left -= entries;
    }
    directory.chunk_offsets[k].store(offset, std::memory_order_relaxed);
  }
}

// 0: no ring, or not copied.
std::uint64_t Recording::ring_bytes(const Lane& lane) const noexcept {
  if (reduction_ != Reduction::none || lane.ring_offset == 0) return 0;
  const std::uint64_t bytes = std::uint64_t{lane.ring_slots} * sizeof(session::Slot);
  return view_.bytes().at(lane.ring_offset, bytes) == nullptr ? 0 : bytes;
}

// 0 for the largest stacks: their holders already include the sums.
std::uint64_t Recording::sums_bytes(const Lane& lane) const noexcept {
  if (reduction_ >= Reduction::largest_stacks || lane.sums_offset == 0) return 0;
  const std::uint64_t bytes = std::uint64_t{lane.sums} * sizeof(session::HolderSum);
  return view_.bytes().at(lane.sums_offset, bytes) == nullptr ? 0 : bytes;
}

std::uint64_t Recording::temporaries_bytes(const Lane& lane) const noexcept {
  if (sums_bytes(lane) == 0 || lane.temporaries_offset == 0) return 0;
  const std::uint64_t bytes = std::uint64_t{lane.sums} * sizeof(std::uint32_t);
  return view_.bytes().at(lane.temporaries_offset, bytes) == nullptr ? 0 : bytes;
}

// 0: no such page.
std::uint64_t Recording::side_bytes(std::uint64_t index, session::SidePage& page) const noexcept {
  if (!view_.read(TableId::side_pages, index, page) || page.shift < session::kSmallestSideShift ||
      page.shift > session::kLargestSideShift) {
    return 0;
  }
  const std::uint64_t bytes = (session::kSideSpanBytes >> page.shift) * sizeof(std::uint64_t);
  const std::uint64_t from = std::uint64_t{page.page} * session::kUnitBytes;
  return view_.bytes().at(from, bytes) == nullptr ? 0 : bytes;
}

void Recording::select_largest() noexcept {
  nodes_.clear();
  memory_.holders.select(view_);
  Holder holder{};
  for (const LargestHolder& row : memory_.holders.rows())
    if (view_.read(TableId::holders, row.holder, holder)) nodes_.select(holder.node);
  Failure failure{};
  for (std::uint64_t i = 1; i < view_.count(TableId::failures); ++i)
    if (view_.read(TableId::failures, i, failure)) nodes_.select(failure.node);
  view_.for_each_in_flight([&](const session::InFlight& request, std::uint32_t) noexcept {
    nodes_.select(request.node);
  });
  nodes_.rank();
}

std::uint64_t Recording::lay_out(Reduction reduction) noexcept {
  reduction_ = reduction;
  end_ = session::kHeaderBytes;
  std::memset(memory_.header, 0, sizeof memory_.header);
  std::memcpy(memory_.header, static_cast<const void*>(&view_.header()), sizeof(Header));
  header_.header_bytes = session::kHeaderBytes;
  std::memset(header_.alive_mutex, 0, sizeof header_.alive_mutex);  // unowned: a copy is dead
  if (job_.cause.end != nullptr) {
    header_.death = job_.cause.end->death;
    header_.end_levels = job_.cause.end->levels;
    header_.account = job_.cause.end->account;
  }
  if (job_.cause.child != nullptr) header_.child = *job_.cause.child;
  if (job_.cause.health != nullptr) {
    std::memcpy(static_cast<void*>(&header_.health), static_cast<const void*>(job_.cause.health),
                sizeof header_.health);
  }

  const auto set = [&](TableId id, std::uint64_t entries, std::uint32_t entry_bytes) {
    table(id).committed.store(entries, std::memory_order_relaxed);
    table(id).entry_bytes = entry_bytes;
  };
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(TableId::count_); ++i) {
    const auto id = static_cast<TableId>(i);
    const std::uint32_t entry_bytes = table(id).entry_bytes;  // the copy: it no longer changes
    set(id, entry_bytes == 0 ? 0 : view_.count(id), entry_bytes);
  }
  set(TableId::lanes, view_.count(TableId::lanes), sizeof(Lane));
  if (table(TableId::side_pages).entry_bytes != 0)
    set(TableId::side_pages, view_.count(TableId::side_pages), sizeof(session::SidePage));
  if (reduction >= Reduction::largest_stacks) {
    select_largest();
    set(TableId::nodes, nodes_.total(), sizeof(Node));
    set(TableId::holders, memory_.holders.rows().size() + 1, sizeof(Holder));
    set(TableId::failures, view_.count(TableId::failures), sizeof(Failure));
    for (const TableId id :
         {TableId::live_blocks, TableId::live_ranges, TableId::side_pages, TableId::device_blocks,
          TableId::sent_signals, TableId::full_holders, TableId::frames})
      set(id, 0, table(id).entry_bytes);
    if (table(TableId::residency).entry_bytes != 0)
      set(TableId::residency, view_.count(TableId::residency), sizeof(session::ResidencyPage));
    if (table(TableId::checkpoint_rows).entry_bytes != 0)
      set(TableId::checkpoint_rows, view_.count(TableId::checkpoint_rows), sizeof(CheckpointRow));
  }
  if (reduction == Reduction::without_checkpoints)
    for (const TableId id : {TableId::checkpoints, TableId::checkpoint_rows})
      set(id, 0, table(id).entry_bytes);
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(TableId::count_); ++i)
    if (static_cast<TableId>(i) != TableId::full_holders) reserve_table(static_cast<TableId>(i));

  const std::uint64_t tables_end = end_;
  const std::uint64_t lanes = table(TableId::lanes).committed.load(std::memory_order_relaxed);
  for (std::uint64_t i = 1; i < lanes; ++i) {
    if (!view_.read(TableId::lanes, i, job_.work.lane)) continue;
    for (const std::uint64_t part : {ring_bytes(job_.work.lane), sums_bytes(job_.work.lane),
                                     temporaries_bytes(job_.work.lane)})
      if (part != 0) reserve(part);
  }
  const std::uint64_t side_pages =
      table(TableId::side_pages).committed.load(std::memory_order_relaxed);
  session::SidePage page{};
  for (std::uint64_t i = 1; i < side_pages; ++i)
    if (const std::uint64_t part = side_bytes(i, page)) reserve(part, session::kUnitBytes);
  parts_end_ = end_;
  reserve_table(TableId::full_holders);
  const std::uint64_t bytes = end_;
  set_file_bytes(bytes);
  end_ = tables_end;  // write() reserves these parts again, in the same order
  return bytes;
}

void Recording::put(std::uint64_t offset, const void* data, std::uint64_t bytes) noexcept {
  const auto* const from = static_cast<const char*>(data);
  for (std::uint64_t done = 0; error_ == 0 && done < bytes;) {
    const std::uint64_t piece = job_.drop_page_cache ? std::min(bytes - done, kFlushBytes) : bytes;
    error_ = system::write_all_at(fd_, from + done, piece, offset + done);
    done += piece;
    unflushed_ += piece;
    if (job_.drop_page_cache && unflushed_ >= kFlushBytes) {
      system::drop_cache(fd_);
      unflushed_ = 0;
    }
  }
}

void Recording::copy_table(TableId id) noexcept {
  const TableDirectory& directory = table(id);
  std::uint64_t left = directory.committed.load(std::memory_order_relaxed);
  for (std::uint32_t k = 0; k < kMaxChunks && left != 0; ++k) {
    const std::uint64_t entries = std::min(left, chunk_bytes(k) / directory.entry_bytes);
    const std::uint64_t bytes = entries * directory.entry_bytes;
    const std::uint64_t from = source(id).chunk_offsets[k].load(std::memory_order_relaxed);
    const std::byte* const data = from == 0 ? nullptr : view_.bytes().at(from, bytes);
    if (data != nullptr)
      put(directory.chunk_offsets[k].load(std::memory_order_relaxed), data, bytes);
    left -= entries;
  }
}

// Writes a table entry by entry: entry(i, out) fills each, which is zero before.
template <class Entry>
void Recording::rewrite_table(TableId id, Entry&& entry) noexcept {
  const TableDirectory& directory = table(id);
  const std::uint64_t count = directory.committed.load(std::memory_order_relaxed);
  char* const buffer = job_.work.json;
  const std::size_t in_buffer = sizeof job_.work.json / directory.entry_bytes;
  std::uint64_t index = 0;
  for (std::uint32_t k = 0; k < kMaxChunks && index < count; ++k) {
    const std::uint64_t in_chunk = std::min(count - index, chunk_bytes(k) / directory.entry_bytes);
    std::uint64_t offset = directory.chunk_offsets[k].load(std::memory_order_relaxed);
    for (std::uint64_t done = 0; done < in_chunk;) {
      const std::size_t entries = std::min<std::uint64_t>(in_buffer, in_chunk - done);
      const std::size_t bytes = entries * directory.entry_bytes;
      std::memset(buffer, 0, bytes);
      for (std::size_t i = 0; i < entries; ++i)
        entry(index + done + i, buffer + i * directory.entry_bytes);
      put(offset, buffer, bytes);
      offset += bytes;
      done += entries;
    }
    index += in_chunk;
  }
}

// Copies `bytes` at `offset` of the source. Returns the offset in the copy; 0: nothing copied.
std::uint64_t Recording::copy(std::uint64_t offset, std::uint64_t bytes,
                              std::uint64_t alignment) noexcept {
  if (bytes == 0) return 0;
  const std::uint64_t to = reserve(bytes, alignment);
  if (end_ > parts_end_) return 0;  // added since the layout was computed
  put(to, view_.bytes().at(offset, bytes), bytes);
  return to;
}

void Recording::copy_lanes() noexcept {
  rewrite_table(TableId::lanes, [&](std::uint64_t i, char* out) {
    Lane& lane = job_.work.lane;
    if (!view_.read(TableId::lanes, i, lane)) return;
    lane.ring_offset = copy(lane.ring_offset, ring_bytes(lane));
    if (lane.ring_offset == 0) lane.ring_slots = 0;
    const std::uint64_t sums = sums_bytes(lane), temporaries = temporaries_bytes(lane);
    lane.sums_offset = copy(lane.sums_offset, sums);
    lane.temporaries_offset = copy(lane.temporaries_offset, temporaries);
    if (lane.sums_offset == 0) lane.sums = 0;
    if (reduction_ >= Reduction::largest_stacks) {
      lane.in_flight.node.store(nodes_.renumbered(lane.in_flight.node));
      lane.in_flight.replaced_holder = memory_.holders.renumbered(lane.in_flight.replaced_holder);
    }
    std::memcpy(out, static_cast<const void*>(&lane), sizeof lane);
  });
}

void Recording::copy_side_table() noexcept {
  if (table(TableId::side_pages).entry_bytes == 0) return;  // sampled mode has none
  rewrite_table(TableId::side_pages, [&](std::uint64_t i, char* out) {
    session::SidePage page{};
    const std::uint64_t bytes = side_bytes(i, page);
    const std::uint64_t from = std::uint64_t{page.page} * session::kUnitBytes;
    const std::uint64_t to = copy(from, bytes, session::kUnitBytes);
    if (to == 0) return;
    page.page = static_cast<std::uint32_t>(to / session::kUnitBytes);
    std::memcpy(out, &page, sizeof page);
  });
}

void Recording::copy_full_holders() noexcept {
  TableDirectory& directory = table(TableId::full_holders);
  if (directory.entry_bytes == 0) return;  // an older session has none
  directory.committed.store(view_.count(TableId::full_holders), std::memory_order_relaxed);
  end_ = parts_end_;
  reserve_table(TableId::full_holders);
  set_file_bytes(end_);
  copy_table(TableId::full_holders);
}

int Recording::write(int fd) noexcept {
  fd_ = fd;
  const bool whole = reduction_ < Reduction::largest_stacks;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(TableId::count_); ++i) {
    const auto id = static_cast<TableId>(i);
    const bool rewritten =
        id == TableId::lanes || id == TableId::side_pages ||
        (!whole && (id == TableId::nodes || id == TableId::holders || id == TableId::failures ||
                    id == TableId::checkpoint_rows || id == TableId::residency));
    if (!rewritten && id != TableId::full_holders) copy_table(id);
  }
  copy_lanes();
  copy_side_table();
  if (whole) copy_full_holders();
  if (!whole) {
    std::uint32_t next = 0;
    rewrite_table(TableId::nodes, [&](std::uint64_t i, char* out) {
      if (i != 0)
        for (++next; next < nodes_.capacity() && !nodes_.is_selected(next);) ++next;
      Node node{};
      if (i == 0 || !view_.read(TableId::nodes, next, node)) return;
      node.parent = nodes_.renumbered(node.parent);
      std::memcpy(out, &node, sizeof node);
    });
    rewrite_table(TableId::holders, [&](std::uint64_t i, char* out) {
      Holder holder{};
      if (i == 0 || !view_.holder(memory_.holders.rows()[i - 1].holder, holder)) return;
      holder.peak_epoch.store(session::peak_epoch_of(view_.header(), holder));
      holder.node = nodes_.renumbered(holder.node);
      std::memcpy(out, static_cast<const void*>(&holder), sizeof holder);
    });
    rewrite_table(TableId::failures, [&](std::uint64_t i, char* out) {
      Failure failure{};
      if (!view_.read(TableId::failures, i, failure)) return;
      failure.node = nodes_.renumbered(failure.node);
      std::memcpy(out, static_cast<const void*>(&failure), sizeof failure);
    });
    if (table(TableId::residency).entry_bytes != 0) {
      rewrite_table(TableId::residency, [&](std::uint64_t i, char* out) {
        auto& page = *reinterpret_cast<session::ResidencyPage*>(out);
        if (i == 0 || !view_.read(TableId::residency, i, page)) return;
        const bool is_first = (i - 1) % session::kResidencyPages == 0;
        for (std::size_t at = is_first ? sizeof(session::Residency) : 0; at < sizeof page;
             at += sizeof(session::ResidencyRow)) {
          auto& row = *reinterpret_cast<session::ResidencyRow*>(out + at);
          row.holder = memory_.holders.renumbered(row.holder);
          row.node = nodes_.renumbered(row.node);
        }
      });
    }
    if (table(TableId::checkpoint_rows).entry_bytes != 0) {
      rewrite_table(TableId::checkpoint_rows, [&](std::uint64_t i, char* out) {
        CheckpointRow row{};
        if (!view_.read(TableId::checkpoint_rows, i, row)) return;
        row.holder = memory_.holders.renumbered(row.holder);
        std::memcpy(out, &row, sizeof row);
      });
    }
  }
  // The header comes last, because it makes the file a session. The final byte sets the file's size
  // when its tail is sparse.
  put(0, memory_.header, sizeof memory_.header);
  const char end = 0;
  if (error_ == 0 && header_.file_bytes > end_)
    error_ = system::write_all_at(fd_, &end, 1, header_.file_bytes - 1);
  return error_;
}

}  // namespace

bool write_recording(InHook, Job& job) noexcept {
  RecordingMemory& memory = *reinterpret_cast<RecordingMemory*>(job.work.text);
  Recording recording{job, memory};
  std::uint64_t events = 0;
  for (std::uint64_t i = 1; i < job.view.count(TableId::lanes) && events < kMaxEvents; ++i)
    if (job.view.read(TableId::lanes, i, job.work.lane))
      events += job.work.lane.ring_next.load(std::memory_order_relaxed);
  const std::uint64_t events_bytes = std::min(events, kMaxEvents) * kEventBytes;

  const auto fits = [&](std::uint64_t bytes) {
    return job.max_bytes == 0 || bytes + kOtherFilesBytes <= job.max_bytes;
  };
  job.reduction = Reduction::none;
  std::uint64_t bytes = recording.lay_out(job.reduction);
  if (!fits(bytes + events_bytes)) {
    job.reduction = Reduction::without_events;
    bytes = recording.lay_out(job.reduction);
  }
  if (!fits(bytes)) {
    job.reduction = Reduction::largest_stacks;
    bytes = recording.lay_out(job.reduction);
  }
  if (!fits(bytes) && job.view.count(TableId::checkpoints) > 1) {
    job.reduction = Reduction::without_checkpoints;
    bytes = recording.lay_out(job.reduction);
  }

  const int fd = create_file(job, "recording.oomrec");
  if (fd < 0) return false;
  job.error = -recording.write(fd);
  system::close(fd);
  if (job.error != 0) return false;
  job.bytes += recording.bytes();
  return true;
}

}  // namespace oomrec::bundle
