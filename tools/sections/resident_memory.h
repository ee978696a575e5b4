// What memory consists of: the resident memory of the process, by the latest look at its pages,
// in kinds that add up (session::ResidentKind); and that of the whole cgroup, or of the machine,
// at a kill.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::sections {

// When the pages were looked at: "at the last look, 1.2 s before the end". Empty: never.
std::string time_of_look(const bundles::Source&);

// A line for each kind, the largest first; empty: the pages were never looked at.
std::string resident_memory_text(const bundles::Source&);

struct ResidentKindName {
  session::ResidentKind kind;
  std::string_view key;    // in JSON: "file_pages"
  std::string_view name;   // as a line of its own
  std::string_view brief;  // in a table or in a line of several: "file pages (reclaimable)"
};
std::span<const ResidentKindName> resident_kinds();               // in the order of ResidentKind
std::uint64_t resident_bytes(const recording::ResidencyTotals&);  // their sum

// "resident 612.3 MiB: file pages 512.0 MiB, heap 60.1 MiB, other 40.2 MiB". Empty: nobody has
// looked.
std::string resident_line(const recording::Recording&);

// Resident memory that has no holder, and why that may be; after a kill in a cgroup also what that
// has of memory that the process did not map. At least a MiB, the largest first; nothing unless
// holders weigh what is resident.
struct UnheldPart {
  std::uint64_t bytes = 0;
  std::string_view name;  // "anonymous memory without a holder"
  std::string reason;     // in a page, after its name
};
std::vector<UnheldPart> unheld_parts(const bundles::Source&);
// Of that, what of the heap is in no block that is in use.
std::uint64_t heap_without_holder_bytes(const recording::Recording&);
// Of that, what its cgroup had of shared memory: at the kill, or at a warning near its limit. 0:
// none, or unknown.
std::uint64_t unmapped_shared_bytes(const bundles::Source&);

// "570.2 MiB of the 728.9 MiB that are resident are pages of files, …" Empty: it is no notable
// part, or nobody has looked.
std::string file_pages_text(const bundles::Source&);

// Null: the pages were never looked at.
Json resident_memory_json(const bundles::Source&);
enum class Process : std::uint8_t { ended, runs };
Json resident_memory_json(const recording::Recording&, Process);

// The memory of the whole cgroup, or of the machine, at a kill.

// As "cgroup_account" of metadata.json; null: there is none.
Json cgroup_account_json(const bundles::Source&);

// Lines of its parts, without those that are 0; empty: there is none.
std::string cgroup_account_text(const bundles::Source&);

}  // namespace oomrec::tools::sections
