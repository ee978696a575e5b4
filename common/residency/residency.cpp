#include "common/residency/residency.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/machine/page.h"
#include "common/session/directories.h"
#include "common/system/files.h"
#include "common/system/keep_largest.h"
#include "common/system/mapping_lines.h"
#include "common/system/memory.h"
#include "common/system/text.h"
#include "common/system/units.h"

namespace oomrec::residency {
namespace {

using session::kLookBytes;
using session::ResidencyRow;
using session::ResidentKind;
using session::TableId;
using session::View;
using system::kArenaBytes;

// --- What there is to look at -------------------------------------------------------------------

// Collects the largest pieces that fit.
class Collection {
 public:
  explicit Collection(std::span<Piece> memory) noexcept : memory_(memory) {}

  void add(std::uint64_t address, std::uint64_t bytes, std::uint32_t holder, std::uint32_t birth_s,
           bool counts_once_touched = false) noexcept {
    if (holder == 0 || bytes < kLookBytes || address + bytes < address) return;
    const Piece piece{
        machine::page_up(address), machine::page_down(address + bytes), 0, 0, holder, birth_s,
        counts_once_touched};
    system::keep_largest(memory_, count_, piece, is_larger);
  }

  std::span<Piece> by_address() noexcept {
    const std::span<Piece> pieces = memory_.first(count_);
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) noexcept { return a.start < b.start; });
    return pieces;
  }

 private:
  static bool is_larger(const Piece& a, const Piece& b) noexcept {
    return a.end - a.start > b.end - b.start;
  }
  std::span<Piece> memory_;
  std::size_t count_ = 0;
};

bool is_heap_holder(const View& view, std::uint32_t holder) noexcept {
  session::Holder entry{};
  return view.read(TableId::holders, holder, entry) &&
         entry.space == static_cast<std::uint8_t>(Space::heap);
}

// What the pieces do not tell.
struct Rest {
  std::uint64_t large_block_bytes = 0;  // whole pages of them: the others count as small blocks
  std::uint64_t small_mapping_bytes = 0;
};

std::span<Piece> collect(const View& view, std::span<Piece> memory, Rest& rest) noexcept {
  Collection pieces{memory};
  session::LiveRange range{};
  for (std::uint64_t i = 1, count = view.count(TableId::live_ranges); i < count; ++i) {
    if (!view.read(TableId::live_ranges, i, range) || range.start == 0) continue;
    const auto kind = static_cast<session::RangeKind>(range.kind);
    const bool is_counted = kind == session::RangeKind::counted;
    if (is_counted && range.bytes < kLookBytes) rest.small_mapping_bytes += range.bytes;
    pieces.add(range.start, range.bytes, range.holder, range.birth_s, !is_counted);
  }
  session::LiveBlock block{};
  for (std::uint64_t i = 1, count = view.count(TableId::live_blocks); i < count; ++i) {
    if (!view.read(TableId::live_blocks, i, block) || block.address == 0) continue;
    if (block.weight != 1 || block.bytes < kLookBytes || !is_heap_holder(view, block.holder))
      continue;
    pieces.add(block.address, block.bytes, block.holder, block.birth_s);
    rest.large_block_bytes +=
        machine::page_down(block.address + block.bytes) - machine::page_up(block.address);
  }
  return pieces.by_address();
}

// Addresses of small blocks of the heap: evenly many of those that are recorded, in order.
std::span<const std::uint64_t> collect_blocks(const View& view,
                                              std::span<std::uint64_t> memory) noexcept {
  std::size_t count = 0;
  const auto visit = [&](TableId table, const auto& address_of) noexcept {
    const std::uint64_t entries = view.count(table);
    const std::uint64_t step = 1 + 2 * entries / std::max<std::size_t>(memory.size(), 1);
    for (std::uint64_t i = 1; i < entries && count < memory.size(); i += step)
      if (const std::uint64_t address = address_of(i)) memory[count++] = address;
  };
  visit(TableId::side_pages, [&](std::uint64_t i) noexcept {
    session::SidePage page{};
    return view.read(TableId::side_pages, i, page) ? page.start : 0;
  });
  visit(TableId::live_blocks, [&](std::uint64_t i) noexcept -> std::uint64_t {
    session::LiveBlock block{};
    const bool is_small = view.read(TableId::live_blocks, i, block) && block.address != 0 &&
                          block.bytes < kLookBytes && is_heap_holder(view, block.holder);
    return is_small ? block.address.load() : 0;
  });
  std::sort(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(count));
  return memory.first(count);
}

// --- /proc/PID/mountinfo ------------------------------------------------------------------------

// "0:27": of a line of mountinfo. smaps has both numbers in hexadecimal.
struct Device {
  std::uint32_t major = 0, minor = 0;
  bool operator==(const Device&) const = default;
};

// Temporary file systems: their pages are memory that only deleting the file gives back.
class MemoryFileSystems {
 public:
  MemoryFileSystems(int process, std::span<char> text) noexcept {
    const system::File file = system::open_file_of(process, "/mountinfo");
    system::MappingLines lines{text};
    std::string_view line;
    const auto read = [&](char* to, std::size_t bytes) noexcept { return file.read(to, bytes); };
    while (count_ < std::size(devices_) && file.is_open() && lines.next(line, read)) add(line);
  }

  bool has(const Device& device) const noexcept {
    return std::find(devices_, devices_ + count_, device) != devices_ + count_;
  }

 private:
  // "44 1 0:27 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw,size=64k"
  void add(std::string_view line) noexcept {
    const std::size_t type = line.find(" - ");
    if (type == line.npos ||
        !(line.substr(type).starts_with(" - tmpfs ") || line.substr(type).starts_with(" - ramfs ")))
      return;
    for (int field = 0; field < 2; ++field)
      line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
    const Device device{
        static_cast<std::uint32_t>(system::number_in(line)),
        static_cast<std::uint32_t>(system::number_in(line.substr(line.find(':') + 1)))};
    if (!has(device)) devices_[count_++] = device;
  }

  Device devices_[24];
  std::size_t count_ = 0;
};

// --- /proc/PID/smaps ----------------------------------------------------------------------------

// A mapping of the kernel's.
struct Area {
  std::uint64_t start = 0, end = 0;
  std::uint64_t resident_bytes = 0, swapped_bytes = 0, anonymous_bytes = 0;
  char name[64];  // its beginning; empty: none
  std::size_t name_bytes = 0;
  Device device;
  bool is_shared = false;
  bool is_file = false;
  bool is_accessible = false;
  bool is_session = false;
  bool is_stack = false;  // mapped with MAP_STACK, and with guard regions

  std::uint64_t bytes() const noexcept { return end - start; }
  std::uint64_t touched_bytes() const noexcept {
    return std::min(resident_bytes + swapped_bytes, bytes());
  }
  // Of a private file mapping, what the process has written: the rest is the file's.
  bool is_private_file() const noexcept { return is_file && !is_shared; }
  std::uint64_t countable_bytes() const noexcept {
    return is_private_file() ? std::min(anonymous_bytes + swapped_bytes, bytes()) : touched_bytes();
  }
  std::string_view named() const noexcept { return {name, name_bytes}; }
};

// Of ours or of another recorded process, by the form of its name: any directory may be theirs.
bool names_session(std::string_view path) noexcept {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return session::creator_of(path.substr(path.rfind('/') + 1)).pid != 0;
}

// "00:1b"
Device read_device(std::string_view text) noexcept {
  const auto major = static_cast<std::uint32_t>(system::take_hexadecimal(text));
  if (text.starts_with(':')) text.remove_prefix(1);
  return {major, static_cast<std::uint32_t>(system::take_hexadecimal(text))};
}

// "7f0a40000000-7f0a40021000 rw-p 00000000 00:00 0          [heap]"
bool read_first_line(std::string_view line, Area& area) noexcept {
  area = {};
  area.start = system::take_hexadecimal(line);
  if (!line.starts_with('-')) return false;
  line.remove_prefix(1);
  area.end = system::take_hexadecimal(line);
  if (line.size() < 6 || area.end <= area.start) return false;
  area.is_accessible = !line.starts_with(" ---");
  area.is_shared = line[4] == 's';
  line.remove_prefix(6);
  for (int field = 0; field < 3; ++field) {  // offset, device, inode
    if (field == 1) area.device = read_device(line);
    if (field == 2) area.is_file = !line.starts_with("0 ") && line != "0";
    line.remove_prefix(std::min(line.find(' '), line.size()));
    while (line.starts_with(' ')) line.remove_prefix(1);
  }
  area.name_bytes = std::min(line.size(), sizeof area.name);
  std::memcpy(area.name, line.data(), area.name_bytes);
  area.is_session = area.is_shared && names_session(line);
  return true;
}

// Reads one area after the other.
class Areas {
 public:
  Areas(int process, std::span<char> text) noexcept
      : file_(system::open_file_of(process, "/smaps")), lines_(text) {}

  bool is_open() const noexcept { return file_.is_open(); }

  // False: no more.
  bool next(Area& area) noexcept {
    std::string_view line;
    while (!has_first_line_ && next_line(line))
      has_first_line_ = starts_area(line) && read_first_line(line, next_);
    if (!has_first_line_) return false;
    area = next_;
    has_first_line_ = false;
    while (next_line(line)) {
      if (starts_area(line)) {
        has_first_line_ = read_first_line(line, next_);
        break;
      }
      if (line.starts_with("Rss:")) {
        area.resident_bytes += kib(line, 4);
      } else if (line.starts_with("Anonymous:")) {
        area.anonymous_bytes = kib(line, 10);
      } else if (line.starts_with("Swap:")) {
        area.swapped_bytes = kib(line, 5);
      } else if (line.starts_with("Private_Hugetlb:") || line.starts_with("Shared_Hugetlb:")) {
        area.resident_bytes += kib(line, line.find(':') + 1);  // not part of Rss
      } else if (line.starts_with("VmFlags:")) {
        area.is_stack = has_flag(line, " gu") && has_flag(line, " nh");
      }
    }
    return true;
  }

 private:
  // "VmFlags: rd wr mr mw me gu ac nh": guard regions (since Linux 6.18), no huge pages (of
  // MAP_STACK since Linux 6.7).
  static bool has_flag(std::string_view line, std::string_view flag) noexcept {
    return line.find(flag) != line.npos;
  }
  // Fields begin with a capital letter, an area with its address.
  static bool starts_area(std::string_view line) noexcept {
    return line.front() < 'A' || line.front() >= 'a';
  }
  static std::uint64_t kib(std::string_view line, std::size_t name) noexcept {
    return system::number_in(line.substr(name)) * kKiB;
  }

  // Not empty.
  bool next_line(std::string_view& line) noexcept {
    const auto read = [&](char* to, std::size_t bytes) noexcept {
      return file_.read(to, std::min(kReadBytes, bytes));
    };
    while (lines_.next(line, read))
      if (!line.empty()) return true;
    return false;
  }

  static constexpr std::size_t kReadBytes = 4096;  // the kernel returns no more at a time
  const system::File file_;
  system::MappingLines lines_;
  Area next_;  // its first line has been read
  bool has_first_line_ = false;
};

// --- /proc/PID/pagemap --------------------------------------------------------------------------

class Pages {
 public:
  explicit Pages(int process) noexcept : file_(system::open_file_of(process, "/pagemap")) {}

  struct Found {
    std::uint64_t certain_bytes = 0;
    // Of pages that this process shares with others of a fork, or of the page of zeros, which reads
    // of untouched memory find and which costs nothing.
    std::uint64_t shared_bytes = 0;
  };
  // What of [start, end) is in memory or in swap: `most_bytes`, if they are found. Reads until the
  // deadline, and not through terabytes that are reserved; what comes after that may be touched.
  // `but_of_file`: pages of a file do not count.
  Found touched(std::uint64_t start, std::uint64_t end, bool but_of_file, std::uint64_t most_bytes,
                const Deadline& deadline) const noexcept {
    constexpr std::uint64_t kMostHoles = std::uint64_t{16} << 30;  // 10 ms
    constexpr std::uint64_t kPresent = std::uint64_t{1} << 63, kSwapped = std::uint64_t{1} << 62;
    constexpr std::uint64_t kExclusive = std::uint64_t{1} << 56;
    constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61;
    constexpr std::size_t kEntries = 128;  // a hook uses little stack
    const std::uint64_t page = machine::page_bytes();
    Found found;
    for (std::uint64_t at = start; at < end && found.certain_bytes < most_bytes;) {
      std::uint64_t entries[kEntries];
      const std::uint64_t count = std::min<std::uint64_t>((end - at) / page, kEntries);
      const long got = count == 0 ? 0
                                  : file_.read_at(at / page * sizeof entries[0], entries,
                                                  count * sizeof entries[0]);
      const std::uint64_t read = got > 0 ? static_cast<std::uint64_t>(got) / sizeof entries[0] : 0;
      const std::uint64_t holes = at - start - found.certain_bytes;
      if (read == 0 || holes >= kMostHoles || deadline.has_passed()) {
        found.shared_bytes += end - at;
        break;
      }
      for (std::uint64_t i = 0; i < read; ++i) {
        if (but_of_file && (entries[i] & kOfFile) != 0) continue;
        if ((entries[i] & kSwapped) != 0 || (entries[i] & kExclusive) != 0)
          found.certain_bytes += page;
        else if ((entries[i] & kPresent) != 0)
          found.shared_bytes += page;
      }
      at += read * page;
    }
    return found;
  }

 private:
  const system::File file_;
};

// --- Both together ------------------------------------------------------------------------------

struct Overlap {
  std::uint64_t start, end;
  std::uint64_t bytes() const noexcept { return end > start ? end - start : 0; }
};
Overlap overlap_of(const Area& area, const Piece& piece) noexcept {
  return {std::max(area.start, piece.start), std::min(area.end, piece.end)};
}

// Divides what is touched of an area among the pieces in it, which are adjacent in `pieces`.
// Returns how much of it they have.
std::uint64_t divide(const Area& area, std::span<Piece> pieces, const Pages& pages,
                     const Deadline& deadline) noexcept {
  const std::uint64_t touched = area.countable_bytes();
  if (touched == 0) return 0;
  const bool of_file = area.is_private_file();
  std::uint64_t certain = 0, doubtful = 0;
  for (Piece& piece : pieces) {
    const Overlap part = overlap_of(area, piece);
    Pages::Found found{part.bytes(), 0};
    if (part.bytes() == area.bytes())
      found.certain_bytes = touched;
    else if (part.bytes() != 0 && touched < area.bytes())
      found = pages.touched(part.start, part.end, of_file, touched - std::min(touched, certain),
                            deadline);
    piece.touched_bytes += found.certain_bytes;
    piece.doubtful_bytes = found.shared_bytes;
    certain += found.certain_bytes;
    doubtful += found.shared_bytes;
  }
  certain = std::min(certain, touched);
  // Of the doubtful ones only so many are more than the page of zeros.
  const std::uint64_t rest = std::min(touched - certain, doubtful);
  for (Piece& piece : pieces)
    if (doubtful != 0)
      piece.touched_bytes += static_cast<std::uint64_t>(static_cast<double>(rest) *
                                                        static_cast<double>(piece.doubtful_bytes) /
                                                        static_cast<double>(doubtful));
  return certain + rest;
}

bool is_arena(const Area& area) noexcept {
  return area.start % kArenaBytes == 0 && area.bytes() <= kArenaBytes;
}

bool is_shared_memory(const Area& area, const MemoryFileSystems& memory) noexcept {
  if (area.is_file && area.device.major == 0 && memory.has(area.device)) return true;
  for (const std::string_view name : {"/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"})
    if (area.named().starts_with(name)) return true;
  return area.is_shared && !area.is_file;
}

void add_to(session::Residency& found, ResidentKind kind, std::uint64_t bytes) noexcept {
  found.kind_bytes[static_cast<std::size_t>(kind)] += bytes;
}

// glibc up to 2.41 maps an inaccessible guard page below each thread's stack. Newer ones use guard
// regions where the kernel has them (since Linux 6.13), which split no mapping: many stacks are one
// area.
bool is_guard_of(const Area& guard, const Area& area) noexcept {
  constexpr std::uint64_t kMostGuardBytes = 64 * kKiB;
  return !guard.is_accessible && guard.end == area.start && guard.bytes() <= kMostGuardBytes;
}

// The executable's modifiable data: its file's, and what follows that without a file. It is mapped
// first.
class Executable {
 public:
  // Call it for each area in turn.
  bool has_variables_in(const Area& area, const Area& before) noexcept {
    if (name_bytes_ == 0) {
      name_bytes_ = area.name_bytes;
      std::memcpy(name_, area.name, area.name_bytes);
    }
    const bool is_its_file = area.is_private_file() && area.named() == named();
    const bool follows = !area.is_file && area.name_bytes == 0 && area.start == before.end;
    is_over_ = is_over_ || !(is_its_file || follows);
    return !is_over_;
  }

 private:
  std::string_view named() const noexcept { return {name_, name_bytes_}; }
  char name_[sizeof(Area::name)];
  std::size_t name_bytes_ = 0;
  bool is_over_ = false;
};

// What of the area is our own private memory: known of this process only.
std::uint64_t own_bytes(const Area& area, const Pages& pages, const Deadline& deadline) noexcept {
  std::uint64_t bytes = 0;
  for (const system::OwnMemory::Range& range : system::g_own_memory.ranges) {
    const Piece own{range.start.load(std::memory_order_relaxed),
                    range.end.load(std::memory_order_relaxed),
                    0,
                    0,
                    0,
                    0,
                    false};
    const Overlap part = overlap_of(area, own);
    if (own.start != 0 && part.bytes() != 0)
      bytes += pages.touched(part.start, part.end, false, part.bytes(), deadline).certain_bytes;
  }
  return bytes;
}

// What an area contains.
struct Contents {
  std::uint64_t held_bytes;  // touched ones of its pieces
  std::uint64_t own_bytes;   // of our private memory
  bool has_small_blocks;
  bool has_variables;
};

void add_area(session::Residency& found, const Area& area, const Area& before,
              const MemoryFileSystems& memory, const Contents& contents) noexcept {
  found.touched_bytes += area.touched_bytes();
  std::uint64_t resident = area.resident_bytes;
  const std::uint64_t anonymous = std::min(area.anonymous_bytes, resident);
  if (area.is_session) return add_to(found, ResidentKind::recorder, resident);
  const ResidentKind unwritten =
      is_shared_memory(area, memory) ? ResidentKind::shared : ResidentKind::files;
  if (contents.has_variables) found.variable_bytes += anonymous;
  if (area.is_private_file() || contents.has_variables) {
    add_to(found, ResidentKind::written_files, anonymous);
    return add_to(found, unwritten, resident - anonymous);
  }
  if (area.is_file || unwritten == ResidentKind::shared) return add_to(found, unwritten, resident);
  if (area.named().starts_with("[stack")) return add_to(found, ResidentKind::stacks, resident);
  const std::uint64_t own = std::min(contents.own_bytes, resident);
  add_to(found, ResidentKind::recorder, own);
  resident -= own;
  const std::uint64_t held = std::min(contents.held_bytes, resident);
  add_to(found, ResidentKind::held, held);
  resident -= held;
  const bool is_free = held == 0 && own == 0;
  const bool is_heap = area.named() == "[heap]" || contents.has_small_blocks;
  add_to(found,
         is_heap || (own == 0 && is_arena(area))                   ? ResidentKind::heap
         : area.is_stack || (is_free && is_guard_of(before, area)) ? ResidentKind::stacks
                                                                   : ResidentKind::unheld,
         resident);
}

// So much of what no piece was found in has holders: as Ruby's heap, which is in thousands of
// mappings.
void hold(session::Residency& found, std::uint64_t bytes) noexcept {
  std::uint64_t& unheld = found.kind_bytes[static_cast<std::size_t>(ResidentKind::unheld)];
  bytes = std::min(bytes, unheld);
  unheld -= bytes;
  add_to(found, ResidentKind::held, bytes);
}

// Sums the pieces up by holder; keeps the rows with the most bytes.
void add_rows(const View& view, std::span<Piece> pieces, Look& out) noexcept {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) noexcept { return a.holder < b.holder; });
  const auto weight = [](const ResidencyRow& row) noexcept {
    return std::max(row.untouched_bytes, row.reserved_bytes);
  };
  const auto is_heavier = [&](const ResidencyRow& a, const ResidencyRow& b) noexcept {
    return weight(a) > weight(b);
  };
  for (std::size_t i = 0; i < pieces.size();) {
    ResidencyRow row{pieces[i].holder, 0, 0, 0, 0, 0};
    for (; i < pieces.size() && pieces[i].holder == row.holder; ++i) {
      const std::uint64_t bytes = pieces[i].end - pieces[i].start;
      pieces[i].touched_bytes = std::min(pieces[i].touched_bytes, bytes);
      if (pieces[i].counts_once_touched) {
        row.reserved_bytes += pieces[i].touched_bytes;
      } else if (pieces[i].touched_bytes != bytes) {
        row.untouched_bytes += bytes - pieces[i].touched_bytes;
        row.birth_s = std::max(row.birth_s, pieces[i].birth_s);
      }
    }
    session::Holder holder{};
    if (weight(row) < kLookBytes || !view.read(TableId::holders, row.holder, holder)) continue;
    row.node = holder.node;
    out.found.untouched_bytes += row.untouched_bytes;
    system::keep_largest(std::span<ResidencyRow>{out.rows}, out.found.row_count, row, is_heavier);
  }
}

ResidencyRow* find_row(Look& look, std::uint32_t holder) noexcept {
  ResidencyRow* const end = look.rows + look.found.row_count;
  ResidencyRow* const row = std::find_if(
      look.rows, end, [&](const ResidencyRow& one) noexcept { return one.holder == holder; });
  return row != end ? row : nullptr;
}

bool has_reservation(const View& view, std::uint32_t holder) noexcept {
  session::LiveRange range{};
  for (std::uint64_t i = 1, count = view.count(TableId::live_ranges); i < count; ++i)
    if (view.read(TableId::live_ranges, i, range) && range.start != 0 && range.holder == holder &&
        range.kind == static_cast<std::uint32_t>(session::RangeKind::reservation))
      return true;
  return false;
}

// The one that grew last of those that made this holder's reservations grow.
ResidencyRow* latest_grower(Look& look, std::uint32_t reserving) noexcept {
  ResidencyRow* latest = nullptr;
  for (std::uint32_t i = 0; i < look.found.row_count; ++i)
    if (look.rows[i].reserving == reserving &&
        (latest == nullptr || look.rows[i].birth_s >= latest->birth_s))
      latest = look.rows + i;
  return latest;
}

// Growers keep the shares that they had at the process' own latest look. What its reservations have
// grown by since is credited to those whose stacks ran meanwhile, or else to the latest grower.
void move_known_shares(const View& view, Look& look) noexcept {
  view.for_each_residency_row([&](const ResidencyRow& share) noexcept {
    if (share.reserving != 0) move_share(look, share);
  });
  for (std::uint32_t i = 0, rows = look.found.row_count; i < rows; ++i) {
    const ResidencyRow own = look.rows[i];
    std::uint64_t before = 0;
    view.for_each_residency_row([&](const ResidencyRow& row) noexcept {
      if (row.holder == own.holder && row.reserving == 0) before = row.reserved_bytes;
    });
    if (own.reserving != 0 || own.reserved_bytes <= before || !has_reservation(view, own.holder))
      continue;
    const std::uint64_t growth = own.reserved_bytes - before;
    const auto move = [&](std::uint32_t number, std::uint64_t bytes, std::uint32_t since_s) {
      session::Holder holder{};
      if (number != own.holder && view.read(TableId::holders, number, holder))
        move_share(look, {number, holder.node, 0, bytes, since_s, own.holder});
    };
    if (view.divide_growth(growth, [&](std::uint32_t holder, std::uint64_t bytes) noexcept {
          move(holder, bytes, 0);
        }))
      continue;
    if (const ResidencyRow* const latest = latest_grower(look, own.holder))
      move(latest->holder, growth, latest->birth_s);
  }
}

// What the whole process has in memory and in swap, by /proc/PID/status; 0: unknown.
std::uint64_t bytes_of_process(int process, std::span<char> memory) noexcept {
  const long bytes = system::open_file_of(process, "/status").read(memory.data(), memory.size());
  const std::string_view text{memory.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
  std::uint64_t sum = 0;
  for (const std::string_view name : {"VmRSS:", "VmSwap:", "HugetlbPages:"})
    sum += system::number_in(system::field(text, name)) * kKiB;
  return sum;
}

// What a look has not reached, from this address on, counts as touched: no piece as more than
// `most_bytes`, and all of them together as so much. Of a reservation, nothing more is known to
// count.
void count_unreached(std::span<Piece> pieces, std::uint64_t address,
                     std::uint64_t most_bytes) noexcept {
  const auto unreached = [&](const Piece& piece) noexcept -> std::uint64_t {
    if (piece.end <= address || piece.counts_once_touched) return 0;
    return std::min(piece.end - std::max(piece.start, address), most_bytes);
  };
  std::uint64_t sum = 0;
  for (const Piece& piece : pieces) sum += unreached(piece);
  if (sum == 0) return;
  const double part = std::min(1.0, static_cast<double>(most_bytes) / static_cast<double>(sum));
  for (Piece& piece : pieces)
    piece.touched_bytes += static_cast<std::uint64_t>(part * static_cast<double>(unreached(piece)));
}

}  // namespace

Deadline::Deadline(std::uint64_t most_ns) noexcept
    : most_ns_(most_ns),
      began_ns_(system::monotonic_ns()),
      began_processor_ns_(system::processor_ns()) {}

bool Deadline::has_passed() const noexcept {
  constexpr std::uint64_t kMostTimes = 8;
  const std::uint64_t passed = system::monotonic_ns() - began_ns_;
  if (passed < most_ns_) return false;
  return passed / kMostTimes >= most_ns_ ||
         system::processor_ns() - began_processor_ns_ >= most_ns_;
}

std::size_t pieces_of(const View& view) noexcept {
  std::size_t pieces = view.count(TableId::live_ranges);
  session::LiveBlock block{};
  for (std::uint64_t i = 1, count = view.count(TableId::live_blocks); i < count; ++i)
    if (view.read(TableId::live_blocks, i, block) && block.bytes >= kLookBytes) ++pieces;
  return pieces;
}

void move_share(Look& look, const ResidencyRow& share) noexcept {
  if (ResidencyRow* const from = find_row(look, share.reserving))
    from->reserved_bytes -= std::min(from->reserved_bytes, share.reserved_bytes);
  if (ResidencyRow* const to = find_row(look, share.holder)) {
    to->reserved_bytes += share.reserved_bytes;
    to->reserving = share.reserving;
    to->birth_s = std::max(to->birth_s, share.birth_s);
  } else if (look.found.row_count < session::kResidencyRows) {
    look.rows[look.found.row_count++] = share;
  }
}

bool is_worse(const session::Residency& look, const session::Residency& before) noexcept {
  return (look.flags & session::kResidencyPartial) != 0 &&
         (before.flags & session::kResidencyPartial) == 0 &&
         before.touched_bytes >= look.touched_bytes / 4 * 3;
}

std::size_t look_at(InHook, int process, const View& view, Memory memory, const Deadline& deadline,
                    Look& out) noexcept {
  out.found = {};
  Rest rest;
  const std::span<Piece> pieces = collect(view, memory.pieces, rest);
  out.found.large_block_bytes = rest.large_block_bytes;
  const std::span<const std::uint64_t> blocks = collect_blocks(view, memory.blocks);
  const int shown = system::thread_with_memory(process);
  const MemoryFileSystems memory_file_systems{shown, memory.text};
  Areas areas{shown, memory.text};
  const Pages pages{shown};
  if (!areas.is_open()) return 0;
  Area area, before;
  Executable executable;
  std::size_t first = 0;
  bool is_late = false;
  for (; areas.next(area); before = area) {
    is_late = deadline.has_passed();
    if (is_late) break;
    // Another thread has made the area larger: the kernel shows it once more.
    if (area.start < before.end) continue;
    while (first < pieces.size() && pieces[first].end <= area.start) ++first;
    std::size_t after = first;
    while (after < pieces.size() && pieces[after].start < area.end) ++after;
    const std::uint64_t held = divide(area, pieces.subspan(first, after - first), pages, deadline);
    const bool may_be_own = process == 0 && !area.is_file && area.resident_bytes != 0;
    const std::uint64_t own = may_be_own ? own_bytes(area, pages, deadline) : 0;
    const auto block = std::lower_bound(blocks.begin(), blocks.end(), area.start);
    add_area(out.found, area, before, memory_file_systems,
             {held, own, block != blocks.end() && *block < area.end,
              executable.has_variables_in(area, before)});
  }
  if (before.end == 0 && !is_late) return 0;  // it ended meanwhile
  hold(out.found, rest.small_mapping_bytes);
  if (is_late) {
    const std::uint64_t reached = out.found.touched_bytes;
    const std::uint64_t all = bytes_of_process(shown, memory.text);
    count_unreached(pieces, area.start,
                    all == 0 ? ~std::uint64_t{0} : all - std::min(all, reached));
    out.found.flags = session::kResidencyPartial;
    out.found.touched_bytes = std::max(reached, all);
  }
  // Not as published: what a look counts as live stays in a thread's share for long.
  for (const Space space : {Space::heap, Space::map})
    out.found.live_bytes +=
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, view.totals(space).live_bytes));
  add_rows(view, pieces, out);
  if (process != 0) move_known_shares(view, out);
  out.found.time_ns = system::monotonic_ns();
  return pieces.size();
}

}  // namespace oomrec::residency
