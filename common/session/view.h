// Reads a session: the file of a living or dead process, a bundle's recording, or the writer's own
// memory while it writes a bundle.
//
// The writer may have died at any instruction, and the file may be forged. So each index is copied
// out of the mapping and checked, and only the copy is used. Untrusted data reads as absent.
// Allocates nothing, locks nothing, never writes, never throws: safe in a hook and in the emergency
// writer. The tools build their own models on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "common/session/chunks.h"
#include "common/session/layout.h"
#include "common/session/pieces.h"
#include "common/session/ring.h"
#include "common/session/small_block.h"

namespace oomrec::session {

enum class Problem : std::uint8_t {
  none,
  too_short,      // not even a header
  not_a_session,  // other magic
  newer_format,   // written by a newer oomrec
  unfinished,     // its writer died before it was a valid session
  damaged,        // the header contradicts itself
};

// Where the bytes of a session are: one after the other, or in the pieces (pieces.h) that its
// writer maps when it needs them.
struct Bytes {
  const std::byte* whole = nullptr;
  const std::byte* const* pieces = nullptr;  // kMaxPieces; null: not mapped yet
  std::uint64_t total = 0;                   // of the file, mapped or not

  static Bytes contiguous(const void* data, std::uint64_t bytes) noexcept;

  // `bytes` bytes at file offset `offset`; nullptr unless all are mapped, in one piece.
  const std::byte* at(std::uint64_t offset, std::uint64_t bytes) const noexcept;
};

// Entries that are reused (entries.h), and where they have their version.
enum class Reuse : std::uint32_t { never, without_version };
template <class T>
inline constexpr Reuse kReuse{};
template <>
inline constexpr Reuse kReuse<LiveBlock>{offsetof(LiveBlock, version)};
template <>
inline constexpr Reuse kReuse<LiveRange>{offsetof(LiveRange, version)};
template <>
inline constexpr Reuse kReuse<DeviceBlock>{offsetof(DeviceBlock, version)};
template <>
inline constexpr Reuse kReuse<Mark> = Reuse::without_version;
template <>
inline constexpr Reuse kReuse<SentSignal> = Reuse::without_version;
template <>
inline constexpr Reuse kReuse<Point> = Reuse::without_version;  // no two have the same time
template <>
inline constexpr Reuse kReuse<DevicePoint> = Reuse::without_version;
template <>
inline constexpr Reuse kReuse<Checkpoint> = Reuse::without_version;
template <>
inline constexpr Reuse kReuse<CheckpointRow> = Reuse::without_version;

template <>
inline constexpr Reuse kReuse<Thread> = Reuse::without_version;

class View {
 public:
  View() = default;

  // Checks the header. The other functions may be used if problem() is `none`.
  explicit View(const Bytes& bytes) noexcept;

  Problem problem() const noexcept { return problem_; }
  std::uint32_t format() const noexcept { return format_; }  // its version, even if too new

  // Points into the session. The words of a living process change: copy a field before checking it.
  // Fields that an older writer lacks are zero. `host` and `oomrec_version` of a forged header may
  // lack the final NUL.
  const Header& header() const noexcept { return *header_; }

  // Number of entries, entry 0 included (0 for an absent table). Bounded by what the file can hold.
  std::uint64_t count(TableId table) const noexcept;

  // Copies entry `index`, zero-filled if the writer's entry was smaller. False: no such entry. T
  // must be the struct of that table. Of one that is reused (kReuse), a free slot and an entry that
  // changes meanwhile read as zero. Cost: a few nanoseconds.
  template <class T>
  bool read(TableId table, std::uint64_t index, T& out) const noexcept {
    static_assert(std::is_trivially_destructible_v<T> && std::is_standard_layout_v<T>);
    static constexpr Chunks kChunks{sizeof(T)};
    if constexpr (std::is_same_v<T, Holder>) {
      if (table == TableId::holders && has_brief_holders()) return read_holder(index, out);
    }
    if constexpr (std::is_same_v<T, Node>) {
      if (table == TableId::nodes && has_numbered_frames()) return read_node(index, out);
    }
    if constexpr (std::is_same_v<T, Module>) return read_module(index, out);
    return read_bytes(kChunks, table, index, &out, sizeof(T), kReuse<T>);
  }

  // Holder `index` including the lanes' unpublished sums, and with valid peak_* whatever its
  // peak_epoch. Cost: a few nanoseconds per lane.
  bool holder(std::uint64_t index, Holder& out) const noexcept;

  // One lane's unpublished sum for the holder in `sum`.
  struct PendingSum {
    HolderSum sum;
    bool in_peak;                   // part of the heap's latest peak step
    std::uint32_t temporary_count;  // among its blocks
  };
  // Visits the lanes' unpublished sums: visit(const PendingSum&).
  template <class Visit>
  void for_each_sum(Visit&& visit) const noexcept {
    const std::uint64_t lanes = count(TableId::lanes);
    for (std::uint64_t lane = 1; lane < lanes; ++lane) {
      const LaneSums sums = sums_of(lane);
      PendingSum pending;
      for (std::uint32_t at = 0; at < sums.count; ++at)
        if (sum_at(sums, at, pending)) visit(static_cast<const PendingSum&>(pending));
    }
  }

  // Visits the blocks in page `index` of the side table: visit(const SmallBlock&).
  template <class Visit>
  void for_each_small_block(std::uint64_t index, Visit&& visit) const noexcept {
    SidePage page;
    const std::byte* const words = words_of(index, page);
    if (words == nullptr) return;
    for (std::uint64_t at = 0; at < kSideSpanBytes >> page.shift; ++at) {
      const SmallBlock block =
          unpacked(load_word(words + at * sizeof(std::uint64_t)), page.start + (at << page.shift));
      if (block.node != 0) visit(block);
    }
  }

  // The latest look at the process' pages, in the session; null: there was none.
  const Residency* residency() const noexcept;
  // Visits its rows, of holders that are still those of then: visit(const ResidencyRow&).
  template <class Visit>
  void for_each_residency_row(Visit&& visit) const noexcept {
    const Residency* const look = residency();
    const std::uint32_t rows = look != nullptr ? look->row_count : 0;
    Holder holder{};
    for (std::uint32_t i = 0; i < rows && i < kResidencyRows; ++i) {
      const ResidencyRow row = residency_row(i);
      if (row.holder != 0 && read(TableId::holders, row.holder, holder) && holder.node == row.node)
        visit(row);
    }
  }

  // Divides what reservations have grown by since then among those whose stacks ran meanwhile:
  // visit(holder, its bytes). False: there are no samples.
  template <class Visit>
  bool divide_growth(std::uint64_t bytes, Visit&& visit) const noexcept {
    double sampled = 0;
    for (const GrowthSample& one : header().growth) sampled += static_cast<double>(one.bytes());
    const bool is_known = sampled != 0;
    for (const GrowthSample& one : header().growth) {
      const auto own = static_cast<double>(one.bytes());
      if (own == 0) continue;
      const double part = static_cast<double>(bytes) * own / sampled;
      const std::uint64_t own_bytes = std::min(bytes, static_cast<std::uint64_t>(part + 0.5));
      visit(one.holder(), own_bytes);
      bytes -= own_bytes;
      sampled -= own;
    }
    return is_known;
  }

  // Visits the requests that threads were making: visit(const InFlight&, std::uint32_t thread), the
  // entry in `threads`. They say something of a process that was killed.
  template <class Visit>
  void for_each_in_flight(Visit&& visit) const noexcept {
    std::uint32_t thread = 0;
    InFlight request;
    for (std::uint64_t i = 1, lanes = count(TableId::lanes); i < lanes; ++i)
      if (read_in_flight(i, request, thread)) visit(static_cast<const InFlight&>(request), thread);
  }

  // The thread that had this entry at `time_ns`; zero if a later one has it by now.
  Thread thread_at(std::uint64_t index, std::uint64_t time_ns) const noexcept;

  // The string `id`; empty when absent or damaged. Points into the session.
  std::string_view string(StringId id) const noexcept;

  // Event `number` of a lane, if its slot still holds it, it is complete, and its stamp is known.
  // Cost: reads up to kStampEvents slots.
  bool event(const Lane& lane, std::uint64_t number, Event& out) const noexcept;

  // Walks a stack, innermost first: calls visit(frame_word) for each frame, at most kMaxFrames + 8
  // (a forged chain may be circular). Returns the number of frames visited.
  template <class Visit>
  std::uint32_t walk(std::uint32_t node, Visit&& visit) const noexcept {
    std::uint32_t frames = 0;
    Node entry;
    while (node != 0 && frames < kMaxFrames + 8 && read(TableId::nodes, node, entry)) {
      ++frames;
      visit(entry.frame);
      if (entry.parent >= node) break;  // a parent has a lower number
      node = entry.parent;
    }
    return frames;
  }

  // Sum over all lanes.
  struct Totals {
    std::uint64_t allocated_bytes = 0, allocated_count = 0, freed_count = 0, failed_count = 0;
    std::int64_t live_bytes = 0;  // usable bytes
    std::int64_t live_count = 0;
  };
  Totals totals(Space space) const noexcept;

  const Bytes& bytes() const noexcept { return bytes_; }

 private:
  struct LaneSums {
    const std::byte* from = nullptr;
    const std::byte* temporaries = nullptr;
    std::uint32_t count = 0;
    bool in_peak = false;
  };
  LaneSums sums_of(std::uint64_t lane) const noexcept;
  static bool sum_at(const LaneSums&, std::uint32_t at, PendingSum& out) noexcept;
  bool slot_at(const Lane&, std::uint64_t number, Event& out) const noexcept;
  bool complete_event(const Lane&, std::uint64_t number, Event&) const noexcept;
  const std::byte* words_of(std::uint64_t index, SidePage& page) const noexcept;
  static std::uint64_t load_word(const std::byte* at) noexcept;

  // File offset of entry `index`, and its length; 0: no such entry. `expected`: the table's shape
  // if its entries have the size that this program knows.
  std::uint64_t offset_of_entry(const Chunks& expected, TableId table, std::uint64_t index,
                                std::uint32_t& entry_bytes) const noexcept;
  // Whether the entries of `holders` are HolderEntry.
  bool has_brief_holders() const noexcept {
    return problem_ == Problem::none &&
           header_->tables[static_cast<u32>(TableId::holders)].entry_bytes == sizeof(HolderEntry);
  }
  const std::byte* entry_at(const Chunks&, TableId, std::uint64_t index) const noexcept;
  ResidencyRow residency_row(std::uint32_t i) const noexcept;
  // False: the lane has no owner, or makes no request.
  bool read_in_flight(std::uint64_t lane, InFlight&, std::uint32_t& thread) const noexcept;
  bool read_holder(std::uint64_t index, Holder& out) const noexcept;
  // Whether those of `nodes` are NodeEntry.
  bool has_numbered_frames() const noexcept {
    return problem_ == Problem::none &&
           header_->tables[static_cast<u32>(TableId::nodes)].entry_bytes == sizeof(NodeEntry);
  }
  bool read_node(std::uint64_t index, Node& out) const noexcept;
  bool read_module(std::uint64_t index, Module& out) const noexcept;
  bool read_bytes(const Chunks& expected, TableId table, std::uint64_t index, void* out,
                  std::size_t bytes, Reuse) const noexcept;

  Bytes bytes_;
  const Header* header_ = nullptr;
  std::uint32_t format_ = 0;
  Problem problem_ = Problem::too_short;
};

// A header's fields up to pid_namespace, for a reader that has not read its tables: no reference to
// a Header may stand for fewer bytes than it has.
class HeaderStart {
 public:
  static constexpr std::size_t kBytes = offsetof(Header, python);

  // `bytes`: kBytes of them, aligned as a Header.
  explicit HeaderStart(const std::byte* bytes) noexcept : bytes_(bytes) {}
  explicit HeaderStart(const Header& header) noexcept
      : bytes_(reinterpret_cast<const std::byte*>(&header)) {}

  u64 magic() const noexcept { return at<u64>(offsetof(Header, magic)); }
  State state() const noexcept {
    return static_cast<State>(at<Atomic<u32>>(offsetof(Header, state)).load());
  }
  u32 alive_word() const noexcept { return at<Atomic<u32>>(offsetof(Header, alive_mutex)).load(); }
  i32 pid() const noexcept { return at<i32>(offsetof(Header, pid)); }
  u64 start_ticks() const noexcept { return at<u64>(offsetof(Header, start_ticks)); }
  const u8 (&boot_id() const noexcept)[16] { return at<u8[16]>(offsetof(Header, boot_id)); }
  u64 failures_total() const noexcept {
    return at<Atomic<u64>>(offsetof(Header, failures_total)).load();
  }
  u32 pid_namespace() const noexcept { return at<u32>(offsetof(Header, pid_namespace)); }

 private:
  template <class Field>
  const Field& at(std::size_t offset) const noexcept {
    return *reinterpret_cast<const Field*>(bytes_ + offset);
  }

  const std::byte* bytes_;
};

// Whether the session's process image is still alive. Dead: another boot; or the alive mutex says
// so (also valid from another pid namespace) and no process with its pid and start time is visible,
// except one that marked its own end; or the mutex has an owner that should be visible here and is
// not. Reads /proc.
enum class Life : std::uint8_t { alive, dead };
Life life_of(const View& view) noexcept;
Life life_of(const HeaderStart& start) noexcept;

// Adds two counts that saturate at 2^32 − 1.
constexpr std::uint32_t saturated_sum(std::uint32_t a, std::uint32_t b) noexcept {
  return a + b < a ? ~std::uint32_t{0} : a + b;
}

// Frame words: see layout.h.
constexpr FrameKind kind_of(std::uint64_t frame) noexcept {
  return static_cast<FrameKind>(frame >> 62);
}
struct NativeFlags {
  bool exact = false;
  bool guessed = false;
};
// An address in no module has 48 bits: its upper 8 are among the module's, behind the last one.
inline constexpr std::uint32_t kMostModules = 0xfeff, kNoModuleAbove = 0xff00;
constexpr std::uint64_t native_frame(std::uint32_t module, std::uint64_t offset,
                                     NativeFlags flags = {}) noexcept {
  const auto upper = static_cast<std::uint32_t>(offset >> 40 & 0xff);
  if (module == 0 && upper != 0) module = kNoModuleAbove | upper;
  return (std::uint64_t{flags.guessed} << 61) | (std::uint64_t{flags.exact} << 60) |
         (std::uint64_t{module & 0xffff} << 40) | (offset & 0xff'ffff'ffff);
}
constexpr std::uint64_t python_frame(std::uint32_t code,
                                     std::uint32_t instruction_offset) noexcept {
  return (std::uint64_t{1} << 62) | (std::uint64_t{code & 0x1fff'ffff} << 32) | instruction_offset;
}
constexpr std::uint64_t script_frame(std::uint32_t code, std::uint32_t line) noexcept {
  return (std::uint64_t{3} << 62) | (std::uint64_t{code & 0x1fff'ffff} << 32) | line;
}
// Whether the frame is of an entry in `codes`.
constexpr bool has_code(std::uint64_t frame) noexcept {
  return kind_of(frame) == FrameKind::python || kind_of(frame) == FrameKind::script;
}
constexpr std::uint64_t special_frame(SpecialFrame what, std::uint32_t argument) noexcept {
  return (std::uint64_t{2} << 62) | (static_cast<std::uint64_t>(what) << 56) | argument;
}
constexpr bool is_guessed(std::uint64_t frame) noexcept { return (frame >> 61) & 1; }
constexpr bool is_exact(std::uint64_t frame) noexcept { return (frame >> 60) & 1; }
constexpr std::uint32_t module_of(std::uint64_t frame) noexcept {
  const auto module = static_cast<std::uint32_t>(frame >> 40 & 0xffff);
  return module > kMostModules ? 0 : module;
}
// Of no module: the address.
constexpr std::uint64_t offset_of(std::uint64_t frame) noexcept {
  const bool is_address = (frame >> 40 & 0xffff) > kMostModules;
  return frame & (is_address ? 0xffff'ffff'ffff : 0xff'ffff'ffff);
}
constexpr std::uint32_t code_of(std::uint64_t frame) noexcept {
  return (frame >> 32) & 0x1fff'ffff;
}
constexpr std::uint32_t instruction_of(std::uint64_t frame) noexcept {
  return static_cast<std::uint32_t>(frame);
}
constexpr std::uint32_t script_line_of(std::uint64_t frame) noexcept {
  return static_cast<std::uint32_t>(frame);
}
constexpr SpecialFrame special_of(std::uint64_t frame) noexcept {
  return static_cast<SpecialFrame>((frame >> 56) & 0x3f);
}
constexpr std::uint32_t argument_of(std::uint64_t frame) noexcept {
  return static_cast<std::uint32_t>(frame);
}

// Whether it is the node of what a program held before it was attached to.
inline bool is_preexisting(const View& view, std::uint32_t number) noexcept {
  Node node{};
  return view.read(TableId::nodes, number, node) && kind_of(node.frame) == FrameKind::special &&
         special_of(node.frame) == SpecialFrame::preexisting;
}

// Whether it is the node of the pool of Python's small objects: what no object in it holds.
inline bool is_object_pool(const View& view, std::uint32_t number) noexcept {
  Node node{};
  return view.read(TableId::nodes, number, node) && kind_of(node.frame) == FrameKind::special &&
         special_of(node.frame) == SpecialFrame::object_pool;
}

}  // namespace oomrec::session
