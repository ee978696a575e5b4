#include "common/text/expand.h"

#include "common/text/text.h"

namespace oomrec::text {
namespace {

// A substituted word must stay one component of a path: no slash, and not "." or "..".
void add_part(Text& path, std::string_view word) noexcept {
  const bool dots = word == "." || word == ".." || word.empty();
  for (const char c : word) path.add(c == '/' || dots ? '_' : c);
  if (word.empty()) path.add('_');
}

}  // namespace

bool expand_path(std::string_view pattern, const PathWords& words, char* out,
                 std::size_t capacity) noexcept {
  Text path{out, capacity};
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    switch (next) {
      case 'p':
        path.signed_number(words.pid);
        break;
      case 'h':
        add_part(path, words.host);
        break;
      case 'e':
        add_part(path, base_name(words.program));
        break;
      case 't':
        path.utc_name(words.start_realtime_ns);
        break;
      case '%':
        path.add('%');
        break;
      default:
        path.add(pattern[i]);
        continue;
    }
    ++i;
  }
  return !path.truncated();
}

bool expand_command(std::string_view pattern, std::int64_t pid, std::string_view bundle, char* out,
                    std::size_t capacity) noexcept {
  Text text{out, capacity};
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p') {
      text.signed_number(pid);
    } else if (next == 'b') {
      text.add(bundle);
    } else {
      text.add(pattern[i]);
    }
    if (next == 'p' || next == 'b' || next == '%') ++i;
  }
  return !text.truncated();
}

}  // namespace oomrec::text
