// Imports a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot) as a session, so that every
// command can read it.
//
// Space `cuda` is the memory that the caching allocator has reserved: allocated blocks with their
// stacks, free ones with a note. Space `torch` is the part that tensors use. The trace, if there is
// one, becomes events, points of the time line, and failures.
#pragma once

#include <string_view>

#include "tools/recording/reading/image.h"
#include "tools/recording/symbolize/module_symbols.h"

namespace oomrec::tools::formats {

struct ImportedSnapshot {
  recording::Image::Bytes bytes{nullptr, &std::free};
  std::uint64_t count = 0;
  std::vector<recording::LineInfo> native_names;  // see StackNodes::take_native_names()
  std::uint32_t last_failure = 0;  // entry in `failures`; 0: the trace does not end with one
};

// Whether a file with these first bytes may be a snapshot.
bool may_be_snapshot(std::string_view first_bytes);

// `written_ns`: realtime at which the file was written. Throws PickleError if it is not a snapshot.
ImportedSnapshot import_snapshot(std::string_view file, std::uint64_t written_ns);

}  // namespace oomrec::tools::formats
