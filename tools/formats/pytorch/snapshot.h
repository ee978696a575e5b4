// A memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot) as a session of ours, which every
// command reads.
//
// Space `cuda` is what the caching allocator has reserved: each block by the stack it was asked for
// with, and what is free by a remark; space `torch` is what is given to tensors, inside of it. The
// trace, where there is one, becomes events, points of the time line and, where it tells of it, a
// refusal. Blocks of PyTorch are rounded up: sizes are those it was asked for, where it tells.
#pragma once

#include <string_view>

#include "tools/recording/reading/image.h"
#include "tools/recording/symbolize/module_symbols.h"

namespace oomrec::tools::formats {

struct ImportedSnapshot {
  recording::Image::Bytes bytes{nullptr, &std::free};
  std::uint64_t count = 0;
  std::vector<recording::Location> native_names;  // see StackNodes::take_native_names()
  std::uint32_t last_refusal = 0;  // entry in `failures`; 0: the trace does not end with one
};

// Whether a file that begins so may be one.
bool may_be_snapshot(std::string_view first_bytes);

// `written_ns`: realtime at which the file was written. Throws PickleError where it is none.
ImportedSnapshot import_snapshot(std::string_view file, std::uint64_t written_ns);

}  // namespace oomrec::tools::formats
