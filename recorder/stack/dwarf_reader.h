// Reads DWARF encodings from memory, never beyond an end. After a read that does not fit, ok() is
// false and further reads return 0: check once, at the end.
#pragma once

#include <cstdint>
#include <cstring>

namespace oomrec::stack {

class DwarfReader {
 public:
  DwarfReader() = default;
  DwarfReader(std::uint64_t at, std::uint64_t end) noexcept : at_(at), end_(end), ok_(at <= end) {}

  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return !ok_ || at_ >= end_; }
  std::uint64_t position() const noexcept { return at_; }

  template <class T>
  T read() noexcept {
    T value{};
    if (need(sizeof value)) {
      std::memcpy(&value, reinterpret_cast<const void*>(at_), sizeof value);
      at_ += sizeof value;
    }
    return value;
  }

  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; need(1); shift += 7) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return 0;
  }

  std::int64_t sleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; need(1);) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) == 0) {
        if ((byte & 0x40) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
        return static_cast<std::int64_t>(value);
      }
    }
    return 0;
  }

  // A pointer in one of the encodings of .eh_frame (DW_EH_PE_…); `data_base` is the start of
  // .eh_frame_hdr. The data that we read contains no indirect or text-relative pointers.
  std::uint64_t pointer(std::uint8_t encoding, std::uint64_t data_base) noexcept {
    const std::uint64_t here = at_;
    std::uint64_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
        value = read<std::uint64_t>();
        break;
      case 0x01:
        value = uleb();
        break;
      case 0x02:
        value = read<std::uint16_t>();
        break;
      case 0x03:
        value = read<std::uint32_t>();
        break;
      case 0x04:
        value = read<std::uint64_t>();
        break;
      case 0x09:
        value = static_cast<std::uint64_t>(sleb());
        break;
      case 0x0a:
        value = static_cast<std::uint64_t>(std::int64_t{read<std::int16_t>()});
        break;
      case 0x0b:
        value = static_cast<std::uint64_t>(std::int64_t{read<std::int32_t>()});
        break;
      case 0x0c:
        value = read<std::uint64_t>();
        break;
      default:
        ok_ = false;
    }
    switch (encoding & 0xf0) {
      case 0x00:
        return value;
      case 0x10:
        return value + here;
      case 0x30:
        return value + data_base;
      default:
        ok_ = false;
        return 0;
    }
  }

  void skip(std::uint64_t bytes) noexcept {
    if (need(bytes)) at_ += bytes;
  }

  // A reader of the next `bytes` bytes; this one continues after them.
  DwarfReader take(std::uint64_t bytes) noexcept {
    if (!need(bytes)) return {};
    const DwarfReader part{at_, at_ + bytes};
    at_ += bytes;
    return part;
  }

 private:
  bool need(std::uint64_t bytes) noexcept {
    if (ok_ && bytes > end_ - at_) ok_ = false;
    return ok_;
  }

  std::uint64_t at_ = 0;
  std::uint64_t end_ = 0;
  bool ok_ = false;
};

}  // namespace oomrec::stack
