#include "tools/findings/advice/held.h"

#include <fmt/format.h>

#include "tools/base/text.h"
#include "tools/print/duration.h"

namespace oomrec::tools::findings {

bool has_any(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool is_python(const recording::Location& frame) {
  return frame.kind == recording::Location::Kind::python;
}

bool runs(Frames frames, Words files, Words functions) {
  return std::any_of(frames.begin(), frames.end(), [&](const recording::Location& frame) {
    return is_python(frame) && (has_any(frame.file, files) || has_any(frame.function, functions));
  });
}

Frames inside(const SubjectFigures& held) {
  return Frames{held.stack}.first(std::min(held.line, held.stack.size()));
}

Frames outside(const SubjectFigures& held) {
  return Frames{held.stack}.subspan(std::min(held.line + 1, held.stack.size()));
}

std::string_view unqualified(std::string_view function) {
  return function.substr(function.rfind('.') + 1);
}

bool is_mostly_freed(const SubjectFigures& held) { return held.bytes < held.ever_bytes / 20; }

std::string held_text(const SubjectFigures& held) {
  return fmt::format("{} holds {} in {}", held.subject, size_text(held.bytes),
                     plural(held.count, "block", "blocks"));
}

std::string growth_text(const SubjectFigures& held) {
  return fmt::format("{}, {} of it in the last {}, none of which was freed", held_text(held),
                     size_text(static_cast<std::uint64_t>(held.growth->bytes)),
                     print::duration_text(held.growth->window_seconds));
}

}  // namespace oomrec::tools::findings
