#include "recorder/stack/eh_frame.h"

#include <string_view>

namespace oomrec::stack {
namespace {

// One CIE or FDE: its body behind the length word. 64-bit entries are not used.
DwarfReader entry_at(const AddressRange& frames, std::uint64_t at) noexcept {
  if (!frames.holds(at, 4)) return {};
  DwarfReader reader{at, frames.end};
  const auto bytes = reader.read<std::uint32_t>();
  if (bytes == 0 || bytes == 0xffffffff) return {};
  return reader.take(bytes);
}

bool read_common(const AddressRange& frames, std::uint64_t at, FrameEntry& entry) noexcept {
  DwarfReader cie = entry_at(frames, at);
  if (cie.read<std::uint32_t>() != 0) return false;  // an FDE, or nothing
  const auto version = cie.read<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  const std::uint64_t text = cie.position();
  while (cie.ok() && cie.read<char>() != '\0') {
  }
  if (!cie.ok()) return false;
  std::string_view augmentation{reinterpret_cast<const char*>(text), cie.position() - text - 1};
  entry.code_alignment = cie.uleb();
  entry.data_alignment = cie.sleb();
  entry.return_register = version == 1 ? cie.read<std::uint8_t>() : cie.uleb();
  if (!augmentation.empty()) {
    if (!augmentation.starts_with('z')) return false;
    DwarfReader data = cie.take(cie.uleb());
    for (const char letter : augmentation.substr(1)) {
      if (letter == 'R') {
        entry.pointer_encoding = data.read<std::uint8_t>();
      } else if (letter == 'P') {
        const auto encoding = data.read<std::uint8_t>();
        data.pointer(encoding & 0x0f, 0);  // its value does not matter, its length does
      } else if (letter == 'L') {
        data.read<std::uint8_t>();
      } else if (letter == 'S') {
        entry.signal = true;
      } else if (!machine::is_marking(letter)) {
        return false;
      }
    }
    if (!data.ok()) return false;
  }
  entry.initial = cie;
  return cie.ok() && entry.return_register == kReturn;
}

bool read_entry(const AddressRange& frames, std::uint64_t at, FrameEntry& entry) noexcept {
  DwarfReader fde = entry_at(frames, at);
  const std::uint64_t here = fde.position();
  const auto back = fde.read<std::uint32_t>();
  if (back == 0 || !fde.ok() || !read_common(frames, here - back, entry)) return false;
  entry.start = fde.pointer(entry.pointer_encoding, 0);
  entry.bytes = fde.pointer(entry.pointer_encoding & 0x0f, 0);
  fde.skip(fde.uleb());  // augmentation data: the language's own
  entry.program = fde;
  return fde.ok();
}

}  // namespace

Found find_entry(const LoadedModule& module, std::uint64_t address, FrameEntry& entry) noexcept {
  const AddressRange header = module.eh_frame_header;
  if (header.start == header.end) return Found::nothing;
  DwarfReader reader{header.start, header.end};
  const auto version = reader.read<std::uint8_t>();
  const auto frames_encoding = reader.read<std::uint8_t>();
  const auto count_encoding = reader.read<std::uint8_t>();
  const auto table_encoding = reader.read<std::uint8_t>();
  const std::uint64_t frames_start = reader.pointer(frames_encoding, header.start);
  const std::uint64_t count = reader.pointer(count_encoding, header.start);
  constexpr std::uint8_t kSortedTable = 0x3b;  // data-relative, signed 4 bytes: what linkers write
  if (!reader.ok() || version != 1 || table_encoding != kSortedTable) return Found::not_understood;

  struct TableRow {
    std::int32_t start, entry;
  };
  const std::uint64_t table = reader.position();
  if (count == 0) return Found::nothing;
  if (count > (header.end - table) / sizeof(TableRow)) return Found::not_understood;
  const auto row = [table](std::uint64_t i) {
    TableRow value;
    std::memcpy(&value, reinterpret_cast<const void*>(table + i * sizeof value), sizeof value);
    return value;
  };
  const auto key = static_cast<std::int64_t>(address - header.start);
  std::uint64_t low = 0;
  std::uint64_t high = count;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (row(middle).start <= key ? low : high) = middle;
  }
  if (row(low).start > key) return Found::nothing;

  const AddressRange frames = module.segment_at(frames_start, PF_R);
  const auto offset = static_cast<std::uint64_t>(std::int64_t{row(low).entry});
  if (!read_entry(frames, header.start + offset, entry)) return Found::not_understood;
  return address - entry.start < entry.bytes ? Found::entry : Found::nothing;
}

}  // namespace oomrec::stack
