// Stacks that outlive the session in which they are interned: a fork's child copies its parent's
// before it lets go of the parent's session, and interns them in its own when that has begun.
//
// Holds everything by value, in at most 80 KiB: module ids become slots, code objects and labels
// their texts. What does not fit is left out, whole stacks at a time. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::stack {

class CopiedStacks {
 public:
  static constexpr std::uint32_t kMost = 16;

  void clear() noexcept { count_ = frames_used_ = codes_used_ = texts_used_ = bytes_used_ = 0; }

  // Copies the stack that ends at this node of the open session. False: it does not fit.
  bool add(InHook, std::uint32_t node) noexcept;

  std::uint32_t count() const noexcept { return count_; }

  // The name of the stack's group of threads.
  std::string_view group(std::uint32_t number) const noexcept;

  // Interns the stack in the open session, below `root` instead of its group; 0: a table is full.
  std::uint32_t intern(InHook, std::uint32_t number, std::uint32_t root) noexcept;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Stack {
    std::uint32_t first, frames;  // of `frames_`, innermost first
    std::uint32_t group;          // a text, or kNone
  };
  struct Text {
    session::StringId id;  // in the session that it was copied from
    std::uint32_t first, bytes;
  };
  struct Code {
    std::uint32_t id;  // likewise
    std::uint32_t file, name, line_table, first_line;
    std::uint32_t interned;  // its id in the session of intern(); 0: not yet
  };

  // Replaces ids of the session in a frame's word by slots and numbers of ours. False: no space.
  bool copy_frame(std::uint64_t& word) noexcept;
  bool copy_text(session::StringId id, std::uint32_t& number) noexcept;
  bool copy_code(std::uint32_t id, std::uint32_t& number) noexcept;
  std::string_view text(std::uint32_t number) const noexcept;
  std::uint32_t code_in_session(InHook, std::uint32_t number) noexcept;
  std::uint64_t frame_in_session(InHook, std::uint64_t word) noexcept;

  std::uint32_t count_ = 0, frames_used_ = 0, codes_used_ = 0, texts_used_ = 0, bytes_used_ = 0;
  std::array<Stack, kMost> stacks_{};
  std::array<std::uint64_t, 1536> frames_{};
  std::array<Code, 256> codes_{};
  std::array<Text, 640> texts_{};
  std::array<char, 48 * 1024> bytes_{};
};

}  // namespace oomrec::stack
