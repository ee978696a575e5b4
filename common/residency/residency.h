// Looks which pages of a process' mappings and large blocks are in memory or in swap, and which
// part of each holder that is. Sizes are those of the address space otherwise, and the kernel kills
// for what is resident.
//
// /proc/PID/smaps says it of each mapping of the kernel's; where one has several holders,
// /proc/PID/pagemap says it of the pages. Both may be read by the process itself and by its user.
// Allocates nothing, takes no lock, and changes nothing: a hook may call it. Other threads go on
// meanwhile, so the figures are those of no one moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/session/view.h"
#include "common/system/hook_scope.h"

namespace oomrec::residency {

// Whole pages that one holder has: of a mapping, or of a large block.
struct Piece {
  std::uint64_t start, end;  // addresses
  std::uint64_t touched_bytes;
  std::uint64_t doubtful_bytes;  // of the current area: pages that may be the kernel's zero page
  std::uint32_t holder;
  std::uint32_t birth_s;
  bool counts_once_touched;  // a reservation or a file: live is what the last look found
};

// The memory of a look.
struct Memory {
  std::span<Piece> pieces;  // with fewer than pieces_of(), the smallest count as touched
  std::span<char> text;     // some KiB
  // Addresses of small blocks of the heap, which tell where an allocator that maps its own memory
  // has it: some hundred of any number of blocks.
  std::span<std::uint64_t> blocks;
};

// What a look finds, as the session has it.
struct Look {
  session::Residency found;  // time_ns 0: smaps may not be read
  session::ResidencyRow rows[session::kResidencyRows];
};
static_assert(sizeof(Look) == session::kResidencyPages * sizeof(session::ResidencyPage));

// Until when a look may go on: for so much of the thread's processor time, and for at most eight
// times as long by the clock, since on a busy machine most of that is not the look's.
class Deadline {
 public:
  explicit Deadline(std::uint64_t most_ns) noexcept;
  bool has_passed() const noexcept;

 private:
  std::uint64_t most_ns_, began_ns_, began_processor_ns_;
};

// Moves a share of what the reservations of `share.reserving` have touched to the grower's row.
// Rows have no order afterwards; a grower without a row gets none if the rows are full.
void move_share(Look&, const session::ResidencyRow& share) noexcept;

// A look that ran out of time divides what it did not reach among the pieces there. A whole one
// says more if it has seen most of what is resident now.
bool is_worse(const session::Residency& look, const session::Residency& before) noexcept;

// At least as many pieces as the session has now.
std::size_t pieces_of(const session::View&) noexcept;

// Leaves the pieces at the beginning of `memory.pieces`, and returns their number. Pieces
// that it has not reached at the deadline count as touched, as far as the process has so much in
// memory and in swap. `process`: a pid; 0: the calling process.
std::size_t look_at(InHook, int process, const session::View&, Memory, const Deadline&,
                    Look& out) noexcept;

}  // namespace oomrec::residency
