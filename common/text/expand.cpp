#include "common/text/expand.h"

#include <algorithm>

#include "common/text/text.h"

namespace oomrec::text {
namespace {

// A substituted word must stay one component of a path: no slash, and not "." or "..".
void add_part(Text& path, std::string_view word) noexcept {
  const bool dots = word == "." || word == ".." || word.empty();
  for (const char c : word) path.add(c == '/' || dots ? '_' : c);
  if (word.empty()) path.add('_');
}

// Whether no shell gives any character of `path` a meaning, be it quoted or not. Programs would
// take a path that starts with a dash for an option.
bool is_plain(std::string_view path) noexcept {
  return !path.starts_with('-') && std::all_of(path.begin(), path.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"/._-+,:@"}.find(c) != std::string_view::npos;
  });
}

// Whether the shell is within '…' or "…" at the end of what it has read so far.
class QuoteState {
 public:
  void read(char c) noexcept {
    if (is_escaped()) {
      escaped_ = false;
    } else if (c == '\\' && quote_ != '\'') {
      escaped_ = true;
    } else if (c == quote_) {
      quote_ = '\0';
    } else if (quote_ == '\0' && (c == '\'' || c == '"')) {
      quote_ = c;
    }
  }
  bool is_escaped() const noexcept { return escaped_; }

  // "$OOMREC_BUNDLE" in double quotes, where and as far as there are none yet.
  void add_reference(Text& text) const noexcept {
    const std::string_view before = quote_ == '\'' ? "'\"" : quote_ == '"' ? "" : "\"";
    const std::string_view after = quote_ == '\'' ? "\"'" : before;
    text.add(before).add("${").add(kBundleVariable).add('}').add(after);
  }

 private:
  char quote_ = '\0';
  bool escaped_ = false;
};

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
  QuoteState quotes;
  const bool plain = is_plain(bundle);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char next = c == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    // A backslash must not escape the reference's first character.
    const bool escapes_path = c == '\\' && pattern.substr(i + 1).starts_with("%b");
    if (escapes_path && !plain && !quotes.is_escaped()) continue;
    if (next == 'b' && !plain) {
      quotes.add_reference(text);
    } else if (next == 'p') {
      text.signed_number(pid);
    } else if (next == 'b') {
      text.add(bundle);
    } else {
      text.add(c);
    }
    if (next == 'p' || next == 'b' || next == '%') ++i;
    // All that %p, %b and %% stand for leaves the shell's quoting as it is.
    quotes.read(c);
  }
  return !text.truncated();
}

}  // namespace oomrec::text
