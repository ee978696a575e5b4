#include "recorder/lua/lines.h"

#include <algorithm>

#include "common/session/view.h"
#include "common/system/text.h"
#include "common/text/text.h"
#include "recorder/python/codes.h"
#include "recorder/python/interpreter.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

using symbols::read_own_memory;

constexpr std::uint64_t kInstructionBytes = 4;

template <class T>
T field(const unsigned char (&bytes)[kLuaPrototypeBytes], std::uint16_t offset) noexcept {
  return load<T>(reinterpret_cast<std::uint64_t>(bytes + offset));
}

// LuaJIT's prototype precedes its code.
constexpr std::uint64_t kJitPrototypeBytes = 104;
constexpr std::uint16_t kJitCode = 32;        // in GCfuncL
constexpr std::uint16_t kJitLineCount = 76;   // in GCproto: how many lines the function has
constexpr std::uint16_t kJitTextLength = 20;  // in GCstr

std::uint64_t jit_prototype_of(InHook hook, std::uint64_t function) noexcept {
  std::uint64_t code = 0;
  return read_own_memory(hook, function + kJitCode, &code, sizeof code) ? code - kJitPrototypeBytes
                                                                        : 0;
}

// The prototype of the function that a value on Lua's stack is; 0: of none.
std::uint64_t prototype_of(InHook hook, const LuaCall& call) noexcept {
  // While Lua moves its stack, addresses on it are offsets.
  constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 30;
  const std::uint64_t value =
      call.function < kMostOffset ? call.stack + call.function : call.function;
  struct {
    std::uint64_t object, tag;
  } read{};
  unsigned char closure[kLuaPrototype + 8];
  if (!read_own_memory(hook, value, &read, sizeof read) || (read.tag & 0x3f) != kLuaFunction ||
      !read_own_memory(hook, read.object, closure, sizeof closure) ||
      closure[kLuaTag] != kLuaFunction)
    return 0;
  return load<std::uint64_t>(reinterpret_cast<std::uint64_t>(closure + kLuaPrototype));
}

// The line of instruction `number`: a base every so many instructions, and a byte for each that
// follows, the difference; before 5.4 a number for each. 0: unknown, as in code without it.
std::uint32_t line_of(InHook hook, const LuaLayout& at,
                      const unsigned char (&prototype)[kLuaPrototypeBytes],
                      std::uint32_t number) noexcept {
  const auto lines = field<std::uint64_t>(prototype, at.line_info);
  std::int32_t line = 0;
  if (lines == 0) return 0;
  if (at.absolute_lines == 0) {
    const bool is_there = read_own_memory(hook, lines + std::uint64_t{number} * 4, &line, 4);
    return is_there && line > 0 ? static_cast<std::uint32_t>(line) : 0;
  }
  struct Base {
    std::int32_t instruction, line;
  };
  const auto bases = field<std::uint64_t>(prototype, at.absolute_lines);
  const auto wanted = static_cast<std::int32_t>(number);
  Base base{-1, field<std::int32_t>(prototype, at.line_defined)};
  std::uint32_t low = 0, high = field<std::uint32_t>(prototype, at.size_absolute_lines);
  while (low < high) {  // the last base that is not behind it
    const std::uint32_t middle = low + (high - low) / 2;
    Base found{};
    if (!read_own_memory(hook, bases + middle * sizeof found, &found, sizeof found)) return 0;
    if (found.instruction > wanted) {
      high = middle;
    } else {
      base = found;
      low = middle + 1;
    }
  }
  line = base.line;
  std::int8_t differences[128];
  for (std::int32_t next = base.instruction + 1; next <= wanted;) {
    const auto count = std::min<std::int32_t>(wanted + 1 - next, sizeof differences);
    if (!read_own_memory(hook, lines + static_cast<std::uint64_t>(next), differences,
                         static_cast<std::size_t>(count)))
      return 0;
    for (std::int32_t i = 0; i != count; ++i) line += differences[i];
    next += count;
  }
  return line > 0 ? static_cast<std::uint32_t>(line) : 0;
}

// From 5.4 on a function does not write down where it is when it makes a table. `number`: the
// instruction where it last did, and goes on behind. If that was a call, which has returned, or its
// beginning, and a table follows before it would write that down again, then it makes the table.
// Returns the instruction, or the one before `number`.
std::uint32_t instruction_of(InHook hook, const LuaLayout& at, std::uint64_t code,
                             std::uint32_t number, std::uint32_t size, bool is_innermost) noexcept {
  constexpr std::uint32_t kMost = 16, kOperation = 0x7f, kNewTable = 19, kCall = 68;
  constexpr std::uint32_t kLastThatReads = 14;  // OP_GETFIELD: up to there they move a value
  const std::uint32_t last = number == 0 ? 0 : number - 1;
  std::uint32_t next[kMost] = {};
  const std::uint32_t count = std::min(kMost, size - last);
  if (!is_innermost || at.absolute_lines == 0 ||
      !read_own_memory(hook, code + last * kInstructionBytes, next, count * kInstructionBytes))
    return last;
  std::uint32_t i = 0;
  if (number != 0 && (next[i++] & kOperation) != kCall) return last;
  while (i < count && (next[i] & kOperation) <= kLastThatReads) ++i;
  return i < count && (next[i] & kOperation) == kNewTable ? last + i : last;
}

// Of LuaJIT: how far behind the function's first one, in as many bytes as that takes; the first
// instruction has none.
std::uint32_t jit_line_of(InHook hook, const LuaLayout& at,
                          const unsigned char (&prototype)[kLuaPrototypeBytes],
                          std::uint32_t number) noexcept {
  const auto lines = field<std::uint64_t>(prototype, at.line_info);
  const auto first = field<std::uint32_t>(prototype, at.line_defined);
  const auto count = field<std::uint32_t>(prototype, kJitLineCount);
  const std::uint64_t bytes = count < 1 << 8 ? 1 : count < 1 << 16 ? 2 : 4;
  std::uint32_t behind = 0;
  if (lines == 0 || number == 0) return first;
  return read_own_memory(hook, lines + (number - 1) * bytes, &behind, bytes) ? first + behind
                                                                             : first;
}

// A string's beginning.
std::string_view text_of(InHook hook, const LuaLayout& at, std::uint64_t string,
                         std::span<char> buffer) noexcept {
  unsigned char header[kLuaText];
  if (string == 0 || !read_own_memory(hook, string, header, sizeof header)) return {};
  const auto number = [&](std::uint16_t offset, auto value) noexcept {
    return load<decltype(value)>(reinterpret_cast<std::uint64_t>(header + offset));
  };
  const bool is_long = at.version != kLuaJit && header[kLuaTag] == kLuaLongString;
  std::uint64_t text = string + kLuaText;
  if (is_long && at.has_long_texts_elsewhere && !read_own_memory(hook, text, &text, sizeof text))
    return {};
  const std::uint64_t length = is_long                 ? number(kLuaLongLength, std::uint64_t{})
                               : at.version == kLuaJit ? number(kJitTextLength, std::uint32_t{})
                                                       : header[kLuaShortLength];
  const std::size_t bytes = std::min<std::uint64_t>(length, buffer.size());
  return read_own_memory(hook, text, buffer.data(), bytes) ? std::string_view{buffer.data(), bytes}
                                                           : std::string_view{};
}

// What Lua's own messages call the chunk: "@" precedes a file, "=" a name, else it is the code.
// Code that was stripped has none.
void add_chunk(std::string_view source, system::Text& text) noexcept {
  if (source.empty()) text << '?';
  if (source.empty() || source.starts_with('@') || source.starts_with('=')) {
    text << source.substr(std::min<std::size_t>(1, source.size()));
    return;
  }
  constexpr std::size_t kMost = 40;
  const std::string_view first = source.substr(0, source.find('\n'));
  text << "[string \"" << first.substr(0, kMost)
       << (first.size() < source.size() ? "...\"]" : "\"]");
}

}  // namespace

LuaPrototype prototype_in(const LuaLayout& at,
                          const unsigned char (&bytes)[kLuaPrototypeBytes]) noexcept {
  return {{field<std::uint64_t>(bytes, at.code), field<std::uint64_t>(bytes, at.line_info),
           field<std::uint64_t>(bytes, at.source),
           std::uint64_t{field<std::uint32_t>(bytes, at.line_defined)} << 32 |
               field<std::uint32_t>(bytes, at.size_code)}};
}

bool find_line(InHook hook, const LuaLayout& at, const LuaCall& call, LuaLine& line) noexcept {
  const bool is_jit = at.version == kLuaJit;
  const std::uint64_t prototype =
      is_jit ? jit_prototype_of(hook, call.function) : prototype_of(hook, call);
  unsigned char bytes[kLuaPrototypeBytes];
  if (prototype == 0 || !read_own_memory(hook, prototype, bytes, sizeof bytes) ||
      bytes[at.state.tag_at] != at.prototype_tag)
    return false;
  const std::uint64_t code =
      is_jit ? prototype + kJitPrototypeBytes : field<std::uint64_t>(bytes, at.code);
  const auto size = field<std::uint32_t>(bytes, at.size_code);
  const std::uint64_t number = (call.instruction - code) / kInstructionBytes;
  const bool is_known = call.instruction >= code && number <= size;
  if (!is_known && !is_jit) return false;
  char source_buffer[512], file_buffer[512], name_buffer[128];
  const std::string_view source =
      text_of(hook, at, field<std::uint64_t>(bytes, at.source), source_buffer);
  system::Text file{file_buffer}, name{name_buffer};
  add_chunk(source, file);
  const auto defined = field<std::uint32_t>(bytes, at.line_defined);
  if (defined == 0) {
    name << "main chunk";
  } else {
    name << "function <" << text::base_name(file.view()) << ':';
    name.number(defined) << '>';
  }
  const std::uint32_t id = add_code(hook, {file.view(), name.view(), {}, defined});
  if (id == 0) return false;
  const std::uint32_t instruction =
      is_known ? instruction_of(hook, at, code, static_cast<std::uint32_t>(number), size,
                                call.is_innermost)
               : 0;
  const std::uint32_t at_line =
      is_jit ? jit_line_of(hook, at, bytes, instruction) : line_of(hook, at, bytes, instruction);
  line.prototype = prototype;
  line.frame = session::script_frame(id, at_line);
  std::copy_n(prototype_in(at, bytes).words, std::size(line.words), line.words);
  return true;
}

}  // namespace oomrec::stack
