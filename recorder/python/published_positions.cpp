#include "recorder/python/published_positions.h"

#include <cstring>
#include <iterator>

namespace oomrec::stack {
namespace {

constexpr std::uint16_t kNone = PythonOffsets::kAbsent;

// clang-format off
constexpr DebugPositions kKnown[] = {
  {184, 192, 232, 240, 248, 264, kNone, 280, 296, 304, 312, 344, kNone, 360, 520, 528, 544, 552, 560},  // 3.13
  {208, 216, 256, 264, 272, 288, 304,   320, 336, 344, 352, 384, 392,   408, 600, 608, 624, 632, 640},  // 3.14
  {208, 240, 320, 328, 336, 352, 368,   384, 400, 408, 416, 448, 456,   472, 696, 704, 720, 728, 736},  // 3.15
};
// clang-format on

constexpr std::uint16_t kWord = 8;
constexpr std::uint16_t kBegin = 24;   // behind the fields with fixed positions
constexpr std::uint16_t kEnd = 1536;   // 888 bytes in 3.15
constexpr std::uint16_t kWithin = 96;  // of the end: the longest look ahead

class Published {
 public:
  explicit Published(const std::byte* base) noexcept : base_(base) {}

  std::uint64_t at(std::uint16_t position) const noexcept {
    std::uint64_t value;
    std::memcpy(&value, base_ + position, sizeof value);
    return value;
  }
  // The first part at or behind `from`, by a test of its position; 0: none.
  template <class Is>
  std::uint16_t next(std::uint16_t from, Is is) const noexcept {
    for (std::uint16_t at = from; at + kWithin < kEnd; at = static_cast<std::uint16_t>(at + kWord))
      if (is(at)) return at;
    return 0;
  }
  // The last one before `from`.
  template <class Is>
  std::uint16_t previous(std::uint16_t from, Is is) const noexcept {
    for (std::uint16_t at = from; at > kBegin;) {
      at = static_cast<std::uint16_t>(at - kWord);
      if (is(at)) return at;
    }
    return 0;
  }

 private:
  const std::byte* base_;
};

constexpr std::uint16_t behind(std::uint16_t position, unsigned words) noexcept {
  return static_cast<std::uint16_t>(position + words * kWord);
}

}  // namespace

const DebugPositions* known_positions(std::uint32_t minor) noexcept {
  const std::uint32_t index = minor - kFirstPublished;
  return index < std::size(kKnown) ? &kKnown[index] : nullptr;
}

bool find_positions(const std::byte* debug_offsets, const TypeSizes& sizes,
                    DebugPositions& out) noexcept {
  const Published words{debug_offsets};
  const auto word = [&](std::uint16_t part, unsigned index) noexcept {
    return words.at(behind(part, index));
  };
  // size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames,
  // localspluskinds, co_code_adaptive: what the type counts ends where the bytecode begins.
  const std::uint16_t code = words.next(kBegin, [&](std::uint16_t at) noexcept {
    return word(at, 0) == sizes.code + kWord && word(at, 9) == sizes.code &&
           word(at, 2) == word(at, 1) + kWord && word(at, 3) == word(at, 2) + kWord &&
           word(at, 4) < sizes.code && word(at, 5) < sizes.code;
  });
  // size (up to the first local variable), previous, executable, instr_ptr, localsplus, owner
  const std::uint16_t frame = words.previous(code, [&](std::uint16_t at) noexcept {
    return word(at, 0) == word(at, 4) + kWord && word(at, 1) == 8 && word(at, 2) == 0 &&
           word(at, 3) < word(at, 4) && word(at, 5) < word(at, 4);
  });
  // size, prev, next, interp, current_frame, …, thread_id, native_thread_id
  const std::uint16_t thread = words.previous(frame, [&](std::uint16_t at) noexcept {
    return word(at, 1) == 0 && word(at, 2) == 8 && word(at, 3) == 16 && word(at, 4) < word(at, 0);
  });
  if (code == 0 || frame == 0 || thread == 0) return false;
  constexpr std::uint64_t kAfterFlags =
      100;  // the ids come behind the thread's frames and counters
  const std::uint16_t id = words.next(behind(thread, 5), [&](std::uint16_t at) noexcept {
    return words.at(at) >= kAfterFlags && words.at(behind(at, 1)) == words.at(at) + kWord;
  });
  // size, ob_type
  const std::uint16_t object = words.next(behind(code, 10), [&](std::uint16_t at) noexcept {
    return word(at, 0) == 16 && word(at, 1) == 8;
  });
  // size, ob_size, ob_sval
  const std::uint16_t bytes = words.next(behind(object, 2), [&](std::uint16_t at) noexcept {
    return word(at, 0) == ((sizes.bytes + 7) & ~std::uint64_t{7}) && word(at, 1) == 16 &&
           word(at, 2) == sizes.bytes - 1;
  });
  // size, state, length, size of an ASCII text
  const std::uint16_t text = words.next(behind(bytes, 3), [&](std::uint16_t at) noexcept {
    return word(at, 0) == sizes.text && word(at, 1) < sizes.text && word(at, 2) == 16 &&
           word(at, 3) < sizes.text;
  });
  if (id == 0 || id >= frame || object == 0 || bytes == 0 || text == 0) return false;
  out = {
      .current_frame = behind(thread, 4),
      .thread_id = id,
      .previous = behind(frame, 1),
      .executable = behind(frame, 2),
      .instr_ptr = behind(frame, 3),
      .owner = behind(frame, 5),
      .tlbc_index = kNone,
      .filename = behind(code, 1),
      .qualname = behind(code, 3),
      .linetable = behind(code, 4),
      .firstlineno = behind(code, 5),
      .code_adaptive = behind(code, 9),
      .tlbc = kNone,
      .ob_type = behind(object, 1),
      .bytes_size = behind(bytes, 1),
      .bytes_data = behind(bytes, 2),
      .text_state = behind(text, 1),
      .text_length = behind(text, 2),
      .text_ascii_bytes = behind(text, 3),
  };
  return true;
}

}  // namespace oomrec::stack
