#include "common/program/preload_list.h"

#include <cstring>

namespace oomrec::program {
namespace {

constexpr std::string_view kSeparators = ": ";

bool is_library(std::string_view entry, std::string_view file_name) noexcept {
  return entry.substr(entry.rfind('/') + 1) == file_name;
}

// Removes the next entry from the front of `list`; `whole` also includes its separator.
std::string_view next_entry(std::string_view& list, std::string_view& whole) noexcept {
  const std::size_t end = list.find_first_of(kSeparators);
  const std::string_view entry = list.substr(0, end);
  whole = list.substr(0, end == list.npos ? end : end + 1);
  list.remove_prefix(whole.size());
  return entry;
}

}  // namespace

std::string_view find_preload(std::string_view list, std::string_view file_name) noexcept {
  while (!list.empty()) {
    std::string_view whole;
    const std::string_view entry = next_entry(list, whole);
    if (is_library(entry, file_name)) return entry;
  }
  return {};
}

std::size_t copy_without_preload(std::string_view list, std::string_view file_name,
                                 char* out) noexcept {
  std::size_t written = 0;
  while (!list.empty()) {
    std::string_view whole;
    if (is_library(next_entry(list, whole), file_name)) continue;
    std::memcpy(out + written, whole.data(), whole.size());
    written += whole.size();
  }
  if (written != 0 && kSeparators.find(out[written - 1]) != kSeparators.npos) --written;
  return written;
}

}  // namespace oomrec::program
