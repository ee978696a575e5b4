#include "recorder/bundle/expand.h"

#include "recorder/bundle/text.h"

namespace oomrec::bundle {
namespace {

// A word must stay one part of a path: no slash, and not "." or "..".
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

}  // namespace oomrec::bundle
