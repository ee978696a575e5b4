#include "tools/base/proc.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "common/system/text.h"
#include "tools/base/descriptor.h"
#include "tools/base/directory.h"
#include "tools/base/text.h"

namespace oomrec::tools {

// Reading fails as well, if it has ended meanwhile: an iterator over a stream would throw then.
std::string process_file(pid_t pid, std::string_view name, std::string_view proc) {
  const Descriptor file =
      open(fmt::format("{}/{}/{}", proc, pid, name).c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  char part[4096];
  for (ssize_t bytes = 0; (bytes = read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(bytes));
  return text;
}

std::string status_field(pid_t pid, std::string_view name, std::string_view proc) {
  const std::string text = process_file(pid, "status", proc);
  const std::string_view value = system::field(text, fmt::format("{}:", name));
  return std::string{value.substr(std::min(value.size(), value.find_first_not_of(" \t")))};
}

std::uint64_t status_bytes(pid_t pid, std::string_view name, std::string_view proc) {
  const std::string field = status_field(pid, name, proc);
  std::string_view digits = field;
  return take_number<std::uint64_t>(digits).value_or(0) << 10;
}

std::string name_of_process(pid_t pid) {
  const std::string name = process_file(pid, "comm");
  return name.substr(0, name.find('\n'));
}

std::vector<pid_t> ids_in(const std::filesystem::path& directory) {
  std::vector<pid_t> ids;
  for (const std::filesystem::path& path : entries_of(directory))
    if (const auto id = parse_number<pid_t>(path.filename().native())) ids.push_back(*id);
  return ids;
}

}  // namespace oomrec::tools
