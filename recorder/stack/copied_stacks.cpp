#include "recorder/stack/copied_stacks.h"

#include <algorithm>
#include <span>

#include "recorder/python/codes.h"
#include "recorder/session/writer.h"
#include "recorder/stack/modules.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {

using session::FrameKind;
using session::g_session;
using session::SpecialFrame;

bool CopiedStacks::copy_text(session::StringId id, std::uint32_t& number) noexcept {
  number = kNone;
  if (id == 0) return true;
  for (std::uint32_t i = 0; i < texts_used_; ++i)
    if (texts_[i].id == id) return number = i, true;
  const std::string_view text = g_session.view().string(id);
  if (texts_used_ == texts_.size() || text.size() > bytes_.size() - bytes_used_) return false;
  texts_[texts_used_] = {id, bytes_used_, static_cast<std::uint32_t>(text.size())};
  std::copy(text.begin(), text.end(), bytes_.begin() + bytes_used_);
  bytes_used_ += static_cast<std::uint32_t>(text.size());
  number = texts_used_++;
  return true;
}

bool CopiedStacks::copy_code(std::uint32_t id, std::uint32_t& number) noexcept {
  for (number = 0; number < codes_used_; ++number)
    if (codes_[number].id == id) return true;
  if (codes_used_ == codes_.size()) return false;
  const session::Code& code = g_session.codes.at(id);
  Code copy{id, kNone, kNone, kNone, code.first_line, 0};
  if (!copy_text(code.file, copy.file) || !copy_text(code.name, copy.name) ||
      !copy_text(code.line_table, copy.line_table))
    return false;
  codes_[codes_used_++] = copy;
  return true;
}

bool CopiedStacks::copy_frame(std::uint64_t& word) noexcept {
  std::uint32_t number = 0;
  switch (session::kind_of(word)) {
    case FrameKind::native: {
      const std::uint32_t slot = module_slot_of(session::module_of(word));
      // Of a library that was unloaded long ago only the address remains.
      const std::uint64_t base =
          slot == 0 ? g_session.modules.at(session::module_of(word)).base : 0;
      word = session::native_frame(slot, base + session::offset_of(word),
                                   {session::is_exact(word), session::is_guessed(word)});
      return true;
    }
    case FrameKind::python:
      if (session::code_of(word) == 0) return true;
      if (!copy_code(session::code_of(word), number)) return false;
      word = session::python_frame(number + 1, session::instruction_of(word));
      return true;
    case FrameKind::script:
      if (!copy_code(session::code_of(word), number)) return false;
      word = session::script_frame(number + 1, session::script_line_of(word));
      return true;
    case FrameKind::special:
      break;
  }
  if (session::special_of(word) != SpecialFrame::context) return true;
  if (!copy_text(session::argument_of(word), number)) return false;
  word = session::special_frame(SpecialFrame::context, number);
  return true;
}

bool CopiedStacks::add(InHook, std::uint32_t node) noexcept {
  if (count_ == kMost) return false;
  Stack stack{frames_used_, 0, kNone};
  const std::span<std::uint64_t> free = std::span{frames_}.subspan(frames_used_);
  while (node != 0) {
    const session::Node entry = session::g_session.node(node);
    std::uint64_t word = entry.frame;
    node = entry.parent;
    const bool is_special = session::kind_of(word) == FrameKind::special;
    // A grandchild's stacks are below the marker already.
    if (is_special && session::special_of(word) == SpecialFrame::inherited) continue;
    if (is_special && session::special_of(word) == SpecialFrame::thread_group) {
      if (!copy_text(session::argument_of(word), stack.group)) return false;
      continue;
    }
    if (stack.frames == free.size() || !copy_frame(word)) return false;
    free[stack.frames++] = word;
  }
  if (stack.frames == 0) return false;  // what the parent has inherited itself, without names
  frames_used_ += stack.frames;
  stacks_[count_++] = stack;
  return true;
}

std::string_view CopiedStacks::text(std::uint32_t number) const noexcept {
  if (number == kNone) return {};
  return {bytes_.data() + texts_[number].first, texts_[number].bytes};
}

std::string_view CopiedStacks::group(std::uint32_t number) const noexcept {
  return text(stacks_[number].group);
}

std::uint32_t CopiedStacks::code_in_session(InHook hook, std::uint32_t number) noexcept {
  Code& code = codes_[number - 1];
  if (code.interned == 0)
    code.interned =
        add_code(hook, {text(code.file), text(code.name), text(code.line_table), code.first_line});
  return code.interned;
}

std::uint64_t CopiedStacks::frame_in_session(InHook hook, std::uint64_t word) noexcept {
  switch (session::kind_of(word)) {
    case FrameKind::native:
      return native_frame_in(hook, session::module_of(word), session::offset_of(word),
                             {session::is_exact(word), session::is_guessed(word)});
    case FrameKind::python:
      if (session::code_of(word) == 0) return word;
      return session::python_frame(code_in_session(hook, session::code_of(word)),
                                   session::instruction_of(word));
    case FrameKind::script:
      return session::script_frame(code_in_session(hook, session::code_of(word)),
                                   session::script_line_of(word));
    case FrameKind::special:
      break;
  }
  if (session::special_of(word) != SpecialFrame::context) return word;
  return session::special_frame(SpecialFrame::context,
                                g_session.add_string(hook, text(session::argument_of(word))));
}

std::uint32_t CopiedStacks::intern(InHook hook, std::uint32_t number, std::uint32_t root) noexcept {
  const Stack& stack = stacks_[number];
  std::uint32_t node = root;
  for (std::uint32_t i = stack.frames; i-- > 0 && node != 0;)
    node = stack::intern(hook, node, frame_in_session(hook, frames_[stack.first + i]));
  return node;
}

}  // namespace oomrec::stack
