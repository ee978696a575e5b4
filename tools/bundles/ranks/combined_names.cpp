#include "tools/bundles/ranks/combined_names.h"

#include <algorithm>

namespace oomrec::tools::bundles {

using session::FrameKind;
using session::SpecialFrame;
using session::TableId;

namespace {

constexpr std::uint32_t kNotTranslated = ~std::uint32_t{0};

// The format of line tables depends on the minor version.
bool same_minor_version(std::uint32_t a, std::uint32_t b) { return a >> 16 == b >> 16; }

}  // namespace

CombinedNames::OfRank::OfRank(CombinedNames& all, const recording::Recording& recording,
                              std::uint32_t rank)
    : all_(all),
      view_(recording.view()),
      nodes_(view_.count(TableId::nodes), kNotTranslated),
      modules_(view_.count(TableId::modules), kNotTranslated) {
  const std::uint32_t python = recording.header().python.version_hex;
  if (all_.python_ == 0) all_.python_ = python;
  same_python_ = same_minor_version(python, all_.python_);
  const std::uint64_t frame = session::special_frame(SpecialFrame::rank, rank);
  root_ = all_.image_.add(TableId::nodes, session::Node{0, 0, frame});
}

session::StringId CombinedNames::OfRank::string(session::StringId id) {
  return id == 0 ? 0 : all_.image_.string(view_.string(id));
}

std::uint32_t CombinedNames::OfRank::module(std::uint32_t id) {
  if (id == 0 || id >= modules_.size()) return 0;
  if (modules_[id] != kNotTranslated) return modules_[id];
  session::Module entry{};
  if (!view_.read(TableId::modules, id, entry)) return modules_[id] = 0;
  entry.path = string(entry.path);
  const std::size_t bytes = std::min<std::size_t>(entry.build_id_bytes, sizeof entry.build_id);
  const std::string build_id{reinterpret_cast<const char*>(entry.build_id), bytes};
  const auto [at, is_new] = all_.modules_.try_emplace({entry.path, build_id}, 0);
  if (is_new && all_.modules_.size() <= session::kMostModules)
    at->second = all_.image_.add(TableId::modules, entry);
  return modules_[id] = at->second;
}

std::uint32_t CombinedNames::OfRank::code(std::uint32_t id) {
  const auto [cached, is_new] = codes_.try_emplace(id, 0);
  session::Code entry{};
  if (!is_new || id == 0 || !view_.read(TableId::codes, id, entry)) return cached->second;
  entry = {string(entry.file), string(entry.name), entry.first_line,
           same_python_ ? string(entry.line_table) : 0};
  const auto [at, first] =
      all_.codes_.try_emplace({entry.file, entry.name, entry.first_line, entry.line_table}, 0);
  if (first) at->second = all_.image_.add(TableId::codes, entry);
  return cached->second = at->second;
}

std::uint64_t CombinedNames::OfRank::frame(std::uint64_t frame) {
  switch (session::kind_of(frame)) {
    case FrameKind::native:
      return session::native_frame(
          module(session::module_of(frame)), session::offset_of(frame),
          {.exact = session::is_exact(frame), .guessed = session::is_guessed(frame)});
    case FrameKind::python:
      return session::python_frame(code(session::code_of(frame)), session::instruction_of(frame));
    case FrameKind::script:
      return session::script_frame(code(session::code_of(frame)), session::script_line_of(frame));
    default: {
      const SpecialFrame what = session::special_of(frame);
      const bool names = what == SpecialFrame::thread_group || what == SpecialFrame::context;
      return session::special_frame(
          what, names ? string(session::argument_of(frame)) : session::argument_of(frame));
    }
  }
}

std::uint32_t CombinedNames::OfRank::node(std::uint32_t node) {
  // Outwards to a node that is already translated, then back in.
  untranslated_.clear();
  std::uint32_t outer = root_;
  session::Node entry{};
  for (std::uint32_t at = node; at != 0 && at < nodes_.size(); at = entry.parent) {
    if (nodes_[at] != kNotTranslated) {
      outer = nodes_[at];
      break;
    }
    if (!view_.read(TableId::nodes, at, entry)) break;
    untranslated_.emplace_back(at, entry);
    if (entry.parent >= at) break;  // forged: parents are always older
  }
  for (auto at = untranslated_.rbegin(); at != untranslated_.rend(); ++at) {
    const session::Node inner{outer, 0, frame(at->second.frame)};
    outer = all_.image_.add(TableId::nodes, inner);
    nodes_[at->first] = outer;
  }
  return outer;
}

}  // namespace oomrec::tools::bundles
