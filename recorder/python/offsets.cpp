#include "recorder/python/layouts.h"
#include "recorder/python/published_positions.h"

#include <cstring>

namespace oomrec::stack {
namespace {

constexpr std::uint32_t minor_of(std::uint32_t version_hex) noexcept {
  return (version_hex >> 16) & 0xff;
}

// Not published: co_version is 24 bytes behind co_firstlineno in each of these versions, compact
// text's data 16 behind ASCII text's; the bits of the state word moved in 3.14t.
constexpr std::uint16_t kVersionBehindFirstLine = 24;
constexpr std::uint16_t kWideBehindAscii = 16;

// Behind the positions of thread_id, native_thread_id and datastack_chunk.
constexpr std::uint16_t kStatusBehindThreadId = 24;

struct PublishedReader {
  const std::byte* base;
  bool plausible = true;

  std::uint64_t word(unsigned position) const noexcept {
    std::uint64_t value;
    std::memcpy(&value, base + position, sizeof value);
    return value;
  }
  // Objects are small: an offset beyond 1 KiB was read from the wrong position.
  std::uint16_t offset(unsigned position) noexcept {
    const std::uint64_t value = word(position);
    if (value >= 1024) plausible = false;
    return static_cast<std::uint16_t>(value);
  }
};

bool publishes_offsets(const std::byte* runtime) noexcept {
  return std::memcmp(runtime, "xdebugpy", 8) == 0;
}

bool read_published(std::uint32_t version_hex, const std::byte* runtime, const TypeSizes& sizes,
                    PythonOffsets& o, const char*& problem) noexcept {
  if (runtime == nullptr) {
    problem = "this Python does not export _PyRuntime";
    return false;
  }
  PublishedReader published{runtime};
  if (!publishes_offsets(runtime) || published.word(8) != version_hex) {
    problem = "this Python's published offsets are not those of its version";
    return false;
  }
  const std::uint32_t minor = minor_of(version_hex);
  const bool free_threaded = is_free_threaded(runtime);
  DebugPositions at{};
  if (const DebugPositions* const known = known_positions(minor)) {
    at = *known;
  } else if (free_threaded || !find_positions(runtime, sizes, at)) {
    problem = "this Python is newer than this oomrec knows";
    return false;
  }
  o = kLayout312;
  o.chain = FrameChain::shim;
  o.thread_cframe = PythonOffsets::kAbsent;
  o.cframe_current = PythonOffsets::kAbsent;
  o.cframe_previous = PythonOffsets::kAbsent;
  o.thread_frame = published.offset(at.current_frame);
  o.thread_id = published.offset(at.thread_id);
  o.thread_status = known_positions(minor) == nullptr
                        ? PythonOffsets::kAbsent
                        : published.offset(at.thread_id + kStatusBehindThreadId);
  o.frame_previous = published.offset(at.previous);
  o.frame_code = published.offset(at.executable);
  o.frame_instruction = published.offset(at.instr_ptr);
  o.frame_role = published.offset(at.owner);
  o.code_file = published.offset(at.filename);
  o.code_name = published.offset(at.qualname);
  o.code_line_table = published.offset(at.linetable);
  o.code_first_line = published.offset(at.firstlineno);
  o.code_bytecode = published.offset(at.code_adaptive);
  o.code_version = static_cast<std::uint16_t>(o.code_first_line + kVersionBehindFirstLine);
  o.object_type = published.offset(at.ob_type);
  o.bytes_size = published.offset(at.bytes_size);
  o.bytes_data = published.offset(at.bytes_data);
  o.text_state = published.offset(at.text_state);
  o.text_length = published.offset(at.text_length);
  o.text_ascii_data = published.offset(at.text_ascii_bytes);
  o.text_wide_data = static_cast<std::uint16_t>(o.text_ascii_data + kWideBehindAscii);
  o.free_threaded = free_threaded;
  if (free_threaded) {
    o.object_refcount = PythonOffsets::kAbsent;  // split in a local and a shared part
    if (minor >= 14) {
      o.frame_tlbc_index = published.offset(at.tlbc_index);
      o.code_tlbc = published.offset(at.tlbc);
      o.text_kind_shift = 8;
      o.text_compact_mask = 0x800;
      o.text_ascii_mask = 0x1000;
    }
  }
  if (!published.plausible) problem = "this Python's published offsets make no sense";
  return published.plausible;
}

constexpr std::uint32_t kFirstTabled = 8;
constexpr const PythonOffsets* kTabled[] = {&kLayout38, &kLayout38, &kLayout310, &kLayout311,
                                            &kLayout312};

}  // namespace

std::uint32_t parse_python_version(std::string_view text) noexcept {
  std::uint32_t parts[3] = {};
  std::size_t at = 0;
  const auto number = [&](std::uint32_t& out) {
    const std::size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' && out < 256) {
      out = out * 10 + static_cast<std::uint32_t>(text[at++] - '0');
    }
    return at > first && out < 256;
  };
  for (std::size_t i = 0; i < 3; ++i) {
    if (i > 0 && (at >= text.size() || text[at++] != '.')) return 0;
    if (!number(parts[i])) return 0;
  }
  // Levels as in PY_VERSION_HEX: a, b, rc (c), final; "+" marks a build from between releases.
  std::uint32_t level = 0xf;
  std::uint32_t serial = 0;
  if (at < text.size() && (text[at] == 'a' || text[at] == 'b' || text[at] == 'r')) {
    level = text[at] == 'a' ? 0xa : text[at] == 'b' ? 0xb : 0xc;
    at += text[at] == 'r' ? 2 : 1;
    number(serial);
  }
  return parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | level << 4 | (serial & 0xf);
}

bool is_free_threaded(const std::byte* runtime) noexcept {
  return publishes_offsets(runtime) && PublishedReader{runtime}.word(16) != 0;
}

bool is_known_version(std::uint32_t version_hex) noexcept {
  const std::uint32_t minor = minor_of(version_hex);
  return minor < kFirstPublished || known_positions(minor) != nullptr;
}

bool find_python_offsets(std::uint32_t version_hex, const std::byte* debug_offsets,
                         const TypeSizes& sizes, PythonOffsets& out,
                         const char*& problem) noexcept {
  const std::uint32_t minor = minor_of(version_hex);
  if (version_hex >> 24 != 3 || minor < kFirstTabled) {
    problem = "this Python is older than 3.8";
    return false;
  }
  if ((version_hex & 0xf0) != 0xf0) {
    problem = "this Python is a pre-release";
    return false;
  }
  if (minor >= kFirstPublished)
    return read_published(version_hex, debug_offsets, sizes, out, problem);
  out = *kTabled[minor - kFirstTabled];
  return true;
}

}  // namespace oomrec::stack
