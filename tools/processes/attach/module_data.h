// The variables of a module in another process, word by word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"

namespace oomrec::tools::processes {

enum class Variables : bool { all, writable };

// visit(address, value) for each word of 8 bytes that is mapped readable, and not executable. A
// large segment that is not writable is left out: it is code for a GPU, or other data of the file.
template <class Visit>
void for_each_variable(const RemoteMemory& memory, const std::vector<RemoteMapping>& mappings,
                       const RemoteModule& module, Variables which, Visit visit) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
  constexpr std::uint64_t kMostConstantBytes = std::uint64_t{64} << 20;
  std::vector<std::uint64_t> words(kPieceBytes / sizeof(std::uint64_t));
  for (const RemoteMapping& mapping : mappings) {
    if (mapping.executable || !mapping.readable ||
        (!mapping.writable &&
         (which == Variables::writable || mapping.end - mapping.start > kMostConstantBytes)))
      continue;
    const std::uint64_t end = std::min(mapping.end, module.end());
    for (std::uint64_t at = std::max(mapping.start, module.start()); at < end; at += kPieceBytes) {
      const std::uint64_t bytes = std::min(kPieceBytes, end - at);
      const std::uint64_t count = memory.read_some(at, words.data(), bytes) / sizeof words[0];
      for (std::uint64_t i = 0; i < count; ++i) visit(at + i * sizeof words[0], words[i]);
    }
  }
}

}  // namespace oomrec::tools::processes
