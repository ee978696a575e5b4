#include "tools/recording/symbolize/generated_code.h"

#include "common/names/perf_map.h"
#include "common/system/files.h"

namespace oomrec::tools::recording {
namespace {

LineInfo line_of_generated_code(std::string_view name) {
  const names::GeneratedName found = names::generated_name(name);
  return {std::string{found.function}, std::string{found.file}, found.line, false};
}

}  // namespace

GeneratedCode::GeneratedCode(const Recording& recording)
    : root_(root_of_process(recording.path())), since_ns_(recording.header().start_realtime_ns) {
  const session::Header& header = recording.header();
  const bool is_here = header.pid_namespace != 0 && header.pid_namespace == system::pid_namespace();
  if (is_here || !root_.empty()) pid_ = static_cast<int>(header.pid);
}

std::vector<LineInfo> GeneratedCode::find(std::uint64_t address) {
  const Code* code = code_at(address);
  if (code == nullptr) {
    read_on();
    code = code_at(address);
  }
  if (code == nullptr) return {};
  return {line_of_generated_code(code->name)};
}

const GeneratedCode::Code* GeneratedCode::code_at(std::uint64_t address) const {
  auto at = by_start_.upper_bound(address);
  if (at == by_start_.begin() || address >= (--at)->second.end) return nullptr;
  return &at->second;
}

void GeneratedCode::read_on() {
  if (pid_ == 0) return;
  const system::File map = names::open_perf_map(root_.c_str(), pid_, since_ns_);
  if (!map.is_open()) return;
  std::vector<char> buffer(64 * 1024);
  const auto add = [&](const names::MapLine& line, std::uint64_t) {
    const std::uint64_t end = line.start + line.bytes;
    auto overlapping = by_start_.upper_bound(line.start);
    if (overlapping != by_start_.begin() && std::prev(overlapping)->second.end > line.start)
      --overlapping;
    while (overlapping != by_start_.end() && overlapping->first < end)
      overlapping = by_start_.erase(overlapping);
    by_start_.emplace(line.start, Code{end, std::string{line.name}});
    return true;
  };
  read_bytes_ = names::for_each_map_line(map, read_bytes_, buffer, add);
}

}  // namespace oomrec::tools::recording
