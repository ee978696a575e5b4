#include "tools/formats/pytorch/stack_nodes.h"

#include <algorithm>
#include <string>

namespace oomrec::tools::formats {
namespace {

using session::TableId;

bool is_python(std::string_view file) { return file.ends_with(".py") || file.starts_with('<'); }

}  // namespace

std::uint32_t StackNodes::node(std::uint32_t parent, std::uint64_t frame) {
  const auto [at, is_new] = nodes_.try_emplace({parent, frame}, 0);
  if (!is_new) return at->second;
  at->second = image_.add(TableId::nodes, session::Node{parent, 0, frame});
  return at->second;
}

std::uint32_t StackNodes::of_frames(const Pickle::Value& frames) {
  const std::span<const Pickle::Value> items = pickle_.items(frames);
  if (items.empty()) return 0;
  const auto [cached, is_new] = lists_.try_emplace(pickle_.identity(frames), 0);
  if (!is_new) return cached->second;
  std::uint32_t at = outermost();
  for (std::size_t i = std::min<std::size_t>(items.size(), session::kMaxFrames); i-- > 0;) {
    const std::uint64_t frame = items[i].is(Pickle::Kind::dict) ? frame_of(items[i]) : 0;
    if (frame != 0) at = node(at, frame);
  }
  return cached->second = at;
}

std::uint32_t StackNodes::of_note(std::string_view text) {
  return node(outermost(),
              session::special_frame(session::SpecialFrame::context, image_.string(text)));
}

std::uint64_t StackNodes::frame_of(const Pickle::Value& frame) {
  const auto [cached, is_new] = frames_.try_emplace(pickle_.identity(frame), 0);
  if (!is_new) return cached->second;
  const std::string_view file = pickle_.text(pickle_.member(frame, "filename"));
  const std::string_view name = pickle_.text(pickle_.member(frame, "name"));
  const auto line = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(pickle_.number(pickle_.member(frame, "line")), 0, INT32_MAX));
  return cached->second =
             is_python(file) ? python_frame(file, name, line) : native_frame(file, name, line);
}

std::uint64_t StackNodes::python_frame(std::string_view file, std::string_view name,
                                       std::uint32_t line) {
  const auto [cached, is_new] = python_.try_emplace({file, name, line}, 0);
  if (!is_new) return cached->second;
  // Without a line table, every instruction is on the code's first line.
  const session::Code code{image_.string(file), image_.string(name), line, 0};
  const std::uint32_t entry = image_.add(TableId::codes, code);
  return cached->second = session::python_frame(entry, 0);
}

std::uint64_t StackNodes::native_frame(std::string_view file, std::string_view name,
                                       std::uint32_t line) {
  const auto [cached, is_new] = native_.try_emplace({file, name, line}, 0);
  if (!is_new) return cached->second;
  if (module_ == 0) {
    session::Module module{};
    module.build_id[0] = 1;  // kNativeBuildId
    module.build_id_bytes = 1;
    module_ = image_.add(TableId::modules, module);
  }
  const bool file_known = !file.empty() && file != "??";
  native_names_.push_back(
      {std::string{name}, file_known ? std::string{file} : std::string{}, line, false});
  return cached->second = session::native_frame(module_, native_names_.size(), {.exact = true});
}

}  // namespace oomrec::tools::formats
