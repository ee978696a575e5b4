// Linkage tables have no CFI here: their entries are recognized by their instructions.
//
// An entry loads a function's address and jumps there; x30 stays the caller's. Until a function is
// bound, that address is the table's first entry's, which pushes x16 and x30 and jumps to the
// loader. The forms are those of GNU ld and gold, with and without branch targets (BTI) and pointer
// authentication. Includes nothing of this machine: tested on every one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace oomrec::machine {

using CodeWord = std::uint32_t;
inline constexpr std::size_t kLinkageWords = 7;  // of the longest entry
inline constexpr std::int64_t kLinkagePush = 16;

struct LinkageInstruction {
  CodeWord bits, mask;
  constexpr bool matches(CodeWord word) const noexcept { return (word & mask) == bits; }
};

// An entry at the start of `code`: how many instructions it has, 0: it is none. `pushes`: which one
// pushes, or none before the end.
struct LinkageEntry {
  std::size_t words = 0;
  std::size_t pushes = kLinkageWords;
};
constexpr LinkageEntry linkage_entry(std::span<const CodeWord> code) noexcept {
  constexpr CodeWord kWhole = 0xffffffff;
  struct {
    LinkageInstruction instruction;
    bool optional = false;
  } constexpr kForm[] = {
      {{0xd503245f, kWhole}, true},  // bti c
      {{0xa9bf7bf0, kWhole}, true},  // stp x16, x30, [sp, #-16]!
      {{0x90000010, 0x9f00001f}},    // adrp x16, page
      {{0xf9400211, 0xffc003ff}},    // ldr x17, [x16, #offset]
      {{0x91000210, 0xffc003ff}},    // add x16, x16, #offset
      {{0xd503219f, kWhole}, true},  // autia1716
      {{0xd61f0220, kWhole}},        // br x17
  };
  static_assert(std::size(kForm) == kLinkageWords);
  LinkageEntry entry;
  for (const auto& step : kForm) {
    if (entry.words < code.size() && step.instruction.matches(code[entry.words])) {
      if (&step == kForm + 1) entry.pushes = entry.words;
      ++entry.words;
    } else if (!step.optional) {
      return {};
    }
  }
  return entry;
}

// How many bytes an entry has pushed when it is interrupted before code[at]; nothing: that is no
// entry. `code`: so much of kLinkageWords - 1 words on both sides as there is.
constexpr std::optional<std::int32_t> pushed_by_linkage(std::span<const CodeWord> code,
                                                        std::size_t at) noexcept {
  for (std::size_t start = at - std::min(at, kLinkageWords - 1); start <= at; ++start) {
    const LinkageEntry entry = linkage_entry(code.subspan(start));
    if (at - start < entry.words)
      return at - start > entry.pushes ? static_cast<std::int32_t>(kLinkagePush) : 0;
  }
  return {};
}

}  // namespace oomrec::machine
