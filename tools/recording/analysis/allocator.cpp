#include "tools/recording/analysis/allocator.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/text/text.h"
#include "tools/base/text.h"

namespace oomrec::tools::recording {

std::string allocator_of(const Recording& recording) {
  constexpr std::array<std::string_view, 8> kOthers = {
      "jemalloc", "tcmalloc", "mimalloc", "snmalloc", "scudo", "tbbmalloc", "rpmalloc", "hoard"};
  const auto known_in = [&](std::string_view path) {
    const std::string_view file = text::base_name(path);
    const auto name = std::find_if(kOthers.begin(), kOthers.end(), [&](std::string_view one) {
      return file.find(one) != file.npos;
    });
    return name != kOthers.end() ? *name : std::string_view{};
  };
  if (const std::string file = recording.text(recording.header().allocator); !file.empty()) {
    if (file.starts_with("libc.so") || file.starts_with("libc-")) return "glibc";
    const std::string_view known = known_in(file);
    return known.empty() ? printable(file) : std::string{known};
  }
  session::Module module{};
  for (std::uint64_t i = 1; i < recording.view().count(session::TableId::modules); ++i) {
    if (!recording.view().read(session::TableId::modules, i, module)) continue;
    const std::string path = recording.text(module.path);
    if (const std::string_view known = known_in(path); !known.empty()) return std::string{known};
  }
  return "glibc";
}

}  // namespace oomrec::tools::recording
