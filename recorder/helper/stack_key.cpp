#include "recorder/helper/stack_key.h"

#include <bit>

#include "common/session/recursion.h"
#include "common/text/frames.h"
#include "common/text/own_code.h"

namespace oomrec::helper {

using session::FrameKind;
using session::TableId;
using session::View;

namespace {

bool is_own_code(std::string_view module) noexcept {
  return !module.empty() && !text::is_plumbing(module) && !text::is_installed(module) &&
         !text::is_interpreter(module);
}

}  // namespace

KeyFrames key_frames(const View& view, std::uint32_t node) noexcept {
  KeyFrames found;
  found.node = node;
  view.walk(node, [&](std::uint64_t frame) {
    session::Code code{};
    session::Module module{};
    if (session::kind_of(frame) == FrameKind::python) {
      if (found.python == 0) found.python = frame;
      if (found.own_python == 0 && view.read(TableId::codes, session::code_of(frame), code) &&
          text::is_programs_own(view.string(code.file)))
        found.own_python = frame;
    } else if (session::kind_of(frame) == FrameKind::native && found.own_native == 0 &&
               view.read(TableId::modules, session::module_of(frame), module)) {
      const std::string_view path = view.string(module.path);
      if (text::is_plumbing(path)) return;
      if (found.native == 0) found.native = frame;
      if (!text::is_installed(path) && !text::is_interpreter(path)) found.own_native = frame;
    }
  });
  return found;
}

void StackKey::add(std::uint64_t function, std::uint64_t place) noexcept {
  if (count_ == session::kMaxFrames) return;
  functions_[count_] = function;
  places_[count_++] = place;
  // Outwards, so the frames that are left out are the last, which are the outer ones.
  count_ -= session::last_cycle([&](unsigned outer, unsigned inner) {
    return inner < count_ && functions_[count_ - 1 - outer] == functions_[count_ - 1 - inner];
  });
}

std::uint64_t StackKey::of(const View& view, std::uint32_t node, bool runs_python) noexcept {
  count_ = 0;
  view.walk(node, [&](std::uint64_t frame) {
    session::Code code{};
    session::Module module{};
    switch (session::kind_of(frame)) {
      case FrameKind::python:
        if (view.read(TableId::codes, session::code_of(frame), code) &&
            !text::is_import_machinery(view.string(code.file)))
          add(session::python_frame(session::code_of(frame), 0),
              text::line_of(view, code, session::instruction_of(frame)));
        return;
      case FrameKind::native:
        if (!runs_python || (view.read(TableId::modules, session::module_of(frame), module) &&
                             is_own_code(view.string(module.path))))
          add(frame, 0);
        return;
      case FrameKind::special:
        if (session::special_of(frame) != session::SpecialFrame::thread_group) add(frame, 0);
    }
  });
  std::uint64_t hash = count_;
  for (std::uint32_t at = 0; at < count_; ++at)
    hash = (std::rotl(hash, 29) ^ (functions_[at] * 0x9e3779b97f4a7c15u + places_[at])) *
           0xd6e8feb86659fd93u;
  return hash;
}

}  // namespace oomrec::helper
