#include "common/text/text.h"

#include <signal.h>

#include <cerrno>
#include <iterator>

namespace oomrec::text {
namespace {

struct ErrorText {
  int value;
  std::string_view name;
  std::string_view words;
};

constexpr ErrorText kErrors[] = {
    {EPERM, "EPERM", "Operation not permitted"},
    {ENOENT, "ENOENT", "No such file or directory"},
    {EINTR, "EINTR", {}},
    {EIO, "EIO", "Input/output error"},
    {E2BIG, "E2BIG", {}},
    {EAGAIN, "EAGAIN", "Resource temporarily unavailable"},
    {ENOMEM, "ENOMEM", "Cannot allocate memory"},
    {EACCES, "EACCES", "Permission denied"},
    {EFAULT, "EFAULT", {}},
    {EBUSY, "EBUSY", {}},
    {EEXIST, "EEXIST", "File exists"},
    {ENODEV, "ENODEV", {}},
    {ENOTDIR, "ENOTDIR", "Not a directory"},
    {EISDIR, "EISDIR", {}},
    {EINVAL, "EINVAL", "Invalid argument"},
    {ENFILE, "ENFILE", "Too many open files in system"},
    {EMFILE, "EMFILE", "Too many open files"},
    {EFBIG, "EFBIG", "File too large"},
    {ENOSPC, "ENOSPC", "No space left on device"},
    {EROFS, "EROFS", "Read-only file system"},
    {ENAMETOOLONG, "ENAMETOOLONG", "File name too long"},
    {ENOSYS, "ENOSYS", {}},
    {ELOOP, "ELOOP", "Too many levels of symbolic links"},
    {EOVERFLOW, "EOVERFLOW", {}},
    {ETIMEDOUT, "ETIMEDOUT", "Timed out"},
    {ESTALE, "ESTALE", "Stale file handle"},
    {EDQUOT, "EDQUOT", "Disk quota exceeded"},
};

const ErrorText* find_error(int error) noexcept {
  for (const ErrorText& entry : kErrors)
    if (entry.value == error) return &entry;
  return nullptr;
}

}  // namespace

Text& Text::size(std::uint64_t bytes) noexcept {
  constexpr std::string_view kUnits[] = {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  if (bytes < 1024) return number(bytes).add(bytes == 1 ? " byte" : " bytes");
  unsigned unit = 0;
  std::uint64_t divisor = 1024;
  while (unit + 1 < std::size(kUnits) && bytes / divisor >= 1024) divisor *= 1024, ++unit;
  // One decimal, rounded half up; 1023.95 KiB and more read as the next unit.
  std::uint64_t whole = bytes / divisor;
  const std::uint64_t rest = bytes % divisor;
  std::uint64_t tenths = (rest / (divisor / 1024) * 10 + 512) / 1024;
  if (tenths == 10) ++whole, tenths = 0;
  if (whole == 1024 && unit + 1 < std::size(kUnits)) whole = 1, ++unit;
  return number(whole).add('.').number(tenths).add(kUnits[unit]);
}

Text& Text::count(std::uint64_t value) noexcept {
  std::uint64_t group = 1;
  while (value / group >= 1000) group *= 1000;
  number(value / group);
  while ((group /= 1000) != 0) add(',').number(value / group % 1000, 3);
  return *this;
}

// Days since 1970 to a date: Howard Hinnant, "chrono-compatible low-level date algorithms".
UtcTime utc_time(std::uint64_t realtime_ns) noexcept {
  const std::uint64_t seconds = realtime_ns / 1'000'000'000U;
  const std::uint64_t shifted = seconds / 86400 + 719468;
  const std::uint64_t era = shifted / 146097;
  const std::uint64_t day_of_era = shifted % 146097;
  const std::uint64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::uint64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::uint64_t shifted_month = (5 * day_of_year + 2) / 153;
  UtcTime time{};
  time.day = static_cast<unsigned>(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  time.month = static_cast<unsigned>(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
  time.year = static_cast<unsigned>(year_of_era + era * 400 + (time.month <= 2 ? 1 : 0));
  time.hour = static_cast<unsigned>(seconds / 3600 % 24);
  time.minute = static_cast<unsigned>(seconds / 60 % 60);
  time.second = static_cast<unsigned>(seconds % 60);
  return time;
}

Text& Text::utc(std::uint64_t realtime_ns) noexcept {
  const UtcTime t = utc_time(realtime_ns);
  number(t.year, 4).add('-').number(t.month, 2).add('-').number(t.day, 2).add('T');
  return number(t.hour, 2).add(':').number(t.minute, 2).add(':').number(t.second, 2).add('Z');
}

Text& Text::utc_name(std::uint64_t realtime_ns) noexcept {
  const UtcTime t = utc_time(realtime_ns);
  number(t.year, 4).number(t.month, 2).number(t.day, 2).add('_');
  return number(t.hour, 2).number(t.minute, 2).number(t.second, 2);
}

std::string_view error_name(int error) noexcept {
  const ErrorText* const entry = find_error(error);
  return entry != nullptr ? entry->name : std::string_view{};
}

std::string_view error_name(Space space, int error) noexcept {
  constexpr int kOutOfMemory = 2;  // the same for both vendors
  if (!is_device_space(space)) return error_name(error);
  if (space == Space::torch) return "torch.OutOfMemoryError";
  if (error != kOutOfMemory) return {};
  return space < Space::hip ? "CUDA_ERROR_OUT_OF_MEMORY" : "hipErrorOutOfMemory";
}

std::string_view error_words(int error) noexcept {
  const ErrorText* const entry = find_error(error);
  if (entry == nullptr) return "unknown error";
  return entry->words.empty() ? entry->name : entry->words;
}

std::string_view error_advice(int error, std::string_view otherwise) noexcept {
  switch (error) {
    case EMFILE:
      return "raise the number of open files (ulimit -n)";
    case ENFILE:
      return "raise the system's number of open files (sysctl fs.file-max)";
    case EFBIG:
      return "raise the limit of file sizes (ulimit -f)";
    case ENOMEM:
      return "raise the limit of memory (ulimit -v, or the cgroup's)";
    default:
      return otherwise;
  }
}

std::string_view signal_name(std::uint32_t signal) noexcept {
  switch (signal) {
    case SIGABRT:
      return "SIGABRT";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    case SIGSEGV:
      return "SIGSEGV";
    case SIGTRAP:
      return "SIGTRAP";
    default:
      return {};
  }
}

std::size_t utf8_bytes(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return byte(1) >= low && byte(1) <= high && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return byte(1) >= low && byte(1) <= high && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

char32_t code_point(std::string_view sequence) noexcept {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first;
  char32_t point = first & (0xffU >> (sequence.size() + 1));
  for (const char byte : sequence.substr(1))
    point = point << 6 | (static_cast<unsigned char>(byte) & 0x3fU);
  return point;
}

std::string_view utf8_of(char32_t point, char (&bytes)[4]) noexcept {
  const bool is_control = point < 0x20 || (point >= 0x7f && point < 0xa0);
  if (is_control || (point >= 0xd800 && point < 0xe000) || point > 0x10'ffff) return {};
  if (point < 0x80) {
    bytes[0] = static_cast<char>(point);
    return {bytes, 1};
  }
  const std::size_t count = point < 0x800 ? 2 : point < 0x1'0000 ? 3 : 4;
  for (std::size_t i = count - 1; i != 0; --i, point >>= 6)
    bytes[i] = static_cast<char>(0x80 | (point & 0x3f));
  bytes[0] = static_cast<char>((0xf00 >> count & 0xff) | point);
  return {bytes, count};
}

}  // namespace oomrec::text
