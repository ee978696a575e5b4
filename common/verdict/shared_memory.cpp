// A SIGBUS because shared memory was full: the process had mapped a file in memory (tmpfs), and its
// file system had too little space when the mapping was made, or has none when the process dies.
#include <cstring>

#include "common/text/text.h"
#include "common/verdict/death_facts.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

std::string_view path_of(const session::SharedMemory& shared) noexcept {
  return {shared.path, strnlen(shared.path, sizeof shared.path)};
}

std::string_view directory_of(std::string_view path) noexcept {
  const std::string_view directory = path.substr(0, path.rfind('/'));
  return path.empty() || directory.empty() ? "a file system in memory" : directory;
}

}  // namespace

void add_shared_memory(text::Text& text, const DeathFacts& facts) noexcept {
  const session::SharedMemory& shared = facts.header.shared;
  const std::string_view path = path_of(shared);
  text.add(directory_of(path)).add(" has ").size(shared.total_bytes);
  if (!shared.too_small()) {
    text.add(" and is full");
    return;
  }
  text.add(", of which ").size(shared.free_bytes).add(" were free when it needed ");
  text.size(shared.needed_bytes).add(" for ");
  text.add(path.empty() ? "a shared mapping" : text::base_name(path));
}

void add_shared_memory_evidence(Verdict& verdict, const DeathFacts& facts) noexcept {
  const session::SharedMemory& shared = facts.header.shared;
  add_line(verdict, [&](text::Text& line) {
    line.add("shared mapping of ").add(path_of(shared)).add(": ").size(shared.needed_bytes);
    line.add(" were still needed, ").size(shared.free_bytes).add(" of ");
    line.size(shared.total_bytes).add(" were free");
  });
  if (!facts.has(session::kDeathSharedFull)) return;
  add_line(verdict, [&](text::Text& line) {
    line.add(directory_of(path_of(shared))).add(" was still full after its end");
  });
}

bool died_for_shared_memory(const session::View& view, const End& end,
                            std::string_view outcome) noexcept {
  return DeathFacts{view, end, outcome}.shared_memory_full();
}

}  // namespace oomrec::verdict
