#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace oomrec::machine {

// Of the code behind a call: it frees the frame, restores registers, and returns.
inline Epilogue epilogue_of(std::span<const std::uint8_t> code) noexcept {
  constexpr std::uint8_t kAdd8[] = {0x48, 0x83, 0xc4}, kAdd32[] = {0x48, 0x81, 0xc4};  // to rsp
  constexpr std::uint8_t kZeroUpper[] = {0xc5, 0xf8, 0x77};
  constexpr std::uint8_t kPop = 0x58, kPopBp = 0x5d, kReturn = 0xc3, kExtended = 0x41;
  Epilogue found;
  const auto begins = [&](const auto& bytes) {
    return code.size() > sizeof bytes && std::memcmp(code.data(), bytes, sizeof bytes) == 0;
  };
  if (begins(kAdd8)) {
    found.frame_bytes = code[sizeof kAdd8];
    code = code.subspan(sizeof kAdd8 + 1);
  } else if (begins(kAdd32) && code.size() >= sizeof kAdd32 + 4) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, code.data() + sizeof kAdd32, sizeof bytes);
    found.frame_bytes = bytes;
    code = code.subspan(sizeof kAdd32 + sizeof bytes);
  }
  if (found.frame_bytes > 0x7fff'ffff || found.frame_bytes % 8 != 0) return {};
  if (begins(kZeroUpper)) code = code.subspan(sizeof kZeroUpper);
  for (; !code.empty(); code = code.subspan(1)) {
    if (code[0] == kReturn) {
      found.frame_bytes += 8;
      return found;
    }
    const bool is_extended = code[0] == kExtended && code.size() > 1;
    if (is_extended) code = code.subspan(1);
    if ((code[0] & 0xf8) != kPop) break;
    if (!is_extended && code[0] == kPopBp) {
      found.has_bp = true;
      found.bp_offset = found.frame_bytes;
    }
    found.frame_bytes += 8;
  }
  return {};
}

// `before`: the bytes before a return address, which is `address`.
inline constexpr std::size_t kLongestCall = 7;
inline Callee callee_of(const std::uint8_t (&before)[kLongestCall],
                        std::uint64_t address) noexcept {
  const std::uint8_t* const end = before + kLongestCall;
  if (end[-5] == 0xe8) {  // call rel32
    std::int32_t distance = 0;
    std::memcpy(&distance, end - sizeof distance, sizeof distance);
    return {Callee::Kind::function, address + static_cast<std::uint64_t>(std::int64_t{distance})};
  }
  for (const int bytes : {2, 3, 4, 6, 7})  // call *r/m64, by its addressing
    if (end[-bytes] == 0xff && (end[1 - bytes] >> 3 & 7) == 2) return {Callee::Kind::unknown, 0};
  return {};
}

}  // namespace oomrec::machine
