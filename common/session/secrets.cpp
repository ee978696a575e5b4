#include "common/session/secrets.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace oomrec::session {

namespace {

constexpr std::size_t kNone = std::string_view::npos;
constexpr std::size_t kStars = 3;
// Names of programs and options, and values that only look like a secret, are not longer. The limit
// keeps the work linear in the bytes, whatever the arguments are.
constexpr std::size_t kLongestWord = 256;

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
constexpr bool is_quote(char c) noexcept { return c == '"' || c == '\'' || c == '`'; }
constexpr bool is_in(char c, std::string_view set) noexcept { return set.find(c) != kNone; }
constexpr bool is_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         is_in(c, "_-.[]");
}

// Moves what stays of a buffer to its front, and puts stars where a secret was.
class Masked {
 public:
  explicit Masked(char* buffer) noexcept : buffer_(buffer) {}

  void keep(std::size_t start, std::size_t end) noexcept {
    std::memmove(buffer_ + written_, buffer_ + start, end - start);
    written_ += end - start;
  }
  void mask(std::size_t bytes) noexcept {
    const std::size_t stars = std::min(bytes, kStars);
    std::memset(buffer_ + written_, '*', stars);
    written_ += stars;
  }
  void end_argument() noexcept { buffer_[written_++] = '\0'; }
  std::size_t written() const noexcept { return written_; }

 private:
  char* const buffer_;
  std::size_t written_ = 0;
};

// The name before a separator: password=, "password": with the quotes around it.
struct Name {
  std::string_view text;
  char before = '\0';     // the character in front, blanks left out; 0 at the start
  bool is_first = false;  // of the argument
  bool is_quoted = false;
  bool has_blank = false;  // between name and separator
};

// What an option before said about the next word.
struct Expected {
  NameKind kind = NameKind::harmless;
  SecretPart part = SecretPart::whole;
};

// Calls visit(start, end) for each argument.
template <class Visit>
void for_each_argument(const char* arguments, std::size_t bytes, Visit visit) noexcept {
  for (std::size_t at = 0; at < bytes;) {
    const void* const nul = std::memchr(arguments + at, '\0', bytes - at);
    const std::size_t end =
        nul == nullptr ? bytes
                       : static_cast<std::size_t>(static_cast<const char*>(nul) - arguments);
    visit(at, end);
    at = end + 1;
  }
}

// Finds the secrets of an argument list, from its start to its end.
class Scanner {
 public:
  // The next secret of `text`, at `from` or later; empty: no further one.
  void begin(std::string_view text) noexcept;
  Span next(std::size_t from) noexcept;

 private:
  Span word_at(std::size_t at) noexcept;
  Span option_at(std::size_t at, std::string_view word) noexcept;
  Span expected_at(std::size_t at, std::size_t end) noexcept;
  Span bearer_at(std::size_t at) const noexcept;
  Span value_at(std::size_t separator) const noexcept;
  Name name_before(std::size_t separator) const noexcept;
  std::size_t end_of_value(std::size_t start, std::size_t most, const Name& name,
                           char separator) const noexcept;
  std::size_t end_of_quoted(std::size_t start, std::size_t limit, bool is_escaped,
                            char quote) const noexcept;
  std::size_t end_of_word(std::size_t at, std::size_t most) const noexcept;
  bool is_word_start(std::size_t at) const noexcept;

  std::string_view text_;
  std::size_t floor_ = 0;    // before it the buffer may have been overwritten already
  bool is_command_ = false;  // the argument has blanks: several words
  Expected expected_;
  NamedPrograms programs_;
};

void Scanner::begin(std::string_view text) noexcept {
  text_ = text;
  is_command_ = std::any_of(text.begin(), text.end(), is_blank);
}

Span Scanner::next(std::size_t from) noexcept {
  floor_ = from;
  for (std::size_t at = from; at < text_.size(); ++at) {
    Span found = is_word_start(at) ? word_at(at) : Span{};
    if (found.empty()) found = secret_shape_at(text_, at);
    if (found.empty() && (text_[at] == '=' || text_[at] == ':')) found = value_at(at);
    if (!found.empty()) return found;
  }
  return {};
}

bool Scanner::is_word_start(std::size_t at) const noexcept {
  if (at == 0) return true;
  if (at == floor_ || is_blank(text_[at]) || is_quote(text_[at])) return false;
  const char before = text_[at - 1];
  return is_blank(before) || is_quote(before) || is_in(before, "=;|&(");
}

// Reads at most `most` bytes.
std::size_t Scanner::end_of_word(std::size_t at, std::size_t most) const noexcept {
  const std::size_t limit = at + std::min(most, text_.size() - at);
  if (!is_command_) return limit;
  if (at > floor_ && is_quote(text_[at - 1])) return end_of_quoted(at, limit, false, text_[at - 1]);
  while (at < limit && !is_blank(text_[at]) && !is_quote(text_[at]) && !is_in(text_[at], ";|)"))
    ++at;
  return at;
}

std::size_t Scanner::end_of_quoted(std::size_t start, std::size_t limit, bool is_escaped,
                                   char quote) const noexcept {
  for (std::size_t at = start; at < limit; ++at) {
    if (text_[at] == quote) return is_escaped && at > start && text_[at - 1] == '\\' ? at - 1 : at;
    if (text_[at] != '\\') continue;
    // Within '…' of a shell a backslash is a character like any other.
    const bool ends = is_escaped && at + 1 < text_.size() && text_[at + 1] == quote;
    if (!ends && quote != '\'') ++at;
  }
  return limit;
}

Span Scanner::word_at(std::size_t at) noexcept {
  if (expected_.kind != NameKind::harmless && text_[at] != '-') {
    // The argument after an option is its value, whatever is in it.
    const Span value = expected_at(at, at == 0 ? text_.size() : end_of_word(at, kNone));
    if (!value.empty()) return value;
  }
  expected_ = {};
  const std::string_view word = text_.substr(at, end_of_word(at, kLongestWord) - at);
  if (word.empty()) return {};
  if (word[0] == '-') return option_at(at, word);
  programs_.read(word);
  // `login password X`: the bare word, as an argument of its own.
  for (const std::string_view name : {"password", "passwd", "passphrase", "passcode"})
    if (!is_command_ && equals_ignoring_case(word, name)) expected_ = {NameKind::certain, {}};
  return bearer_at(at);
}

// A word that an option before has announced.
Span Scanner::expected_at(std::size_t at, std::size_t end) noexcept {
  const Expected expected = expected_;
  expected_ = {};
  if (at == end) return {};
  const std::string_view word = text_.substr(at, end - at);
  std::size_t start = at;
  switch (expected.part) {
    case SecretPart::whole:
      return is_secret_value(expected.kind, word) ? Span{at, end} : Span{};
    case SecretPart::assigned:
      return word.find('=') != kNone ? Span{at, end} : Span{};
    case SecretPart::after_colon:
    case SecretPart::after_percent:
      start = text_.find(expected.part == SecretPart::after_colon ? ':' : '%', at);
      return start < end ? Span{start + 1, end} : Span{};
  }
  return {};
}

Span Scanner::option_at(std::size_t at, std::string_view word) noexcept {
  SecretOption option;
  if (programs_.find(word, option)) {
    expected_ = {NameKind::certain, option.part};
    if (!option.is_attached) return {};
    return expected_at(at + option.option.size(), end_of_word(at, kNone));
  }
  if (std::all_of(word.begin(), word.end(), is_name)) expected_ = {kind_of_name(word), {}};
  return {};
}

// Bearer X, outside of a header whose name says so.
Span Scanner::bearer_at(std::size_t at) const noexcept {
  constexpr std::string_view kBearer = "bearer";
  constexpr std::size_t kShortest = 6, kLong = 24;
  if (!equals_ignoring_case(text_.substr(at, kBearer.size()), kBearer)) return {};
  std::size_t start = at + kBearer.size();
  if (start == text_.size() || !is_blank(text_[start])) return {};
  while (start < text_.size() && is_blank(text_[start])) ++start;
  std::size_t end = start;
  while (end < text_.size() && !is_blank(text_[end]) && !is_quote(text_[end])) ++end;
  const std::string_view value = text_.substr(start, end - start);
  const bool is_secret =
      value.size() >= kLong || (value.size() >= kShortest && looks_random(value));
  return is_secret ? Span{start, end} : Span{};
}

Name Scanner::name_before(std::size_t separator) const noexcept {
  Name name;
  std::size_t end = separator;
  while (end > floor_ && is_blank(text_[end - 1])) --end;
  name.has_blank = end != separator;
  name.is_quoted = end > floor_ && is_quote(text_[end - 1]);
  if (name.is_quoted) {
    --end;
    if (end > floor_ && text_[end - 1] == '\\') --end;
  }
  constexpr std::size_t kLongest = 128;
  std::size_t start = end;
  while (start > floor_ && end - start < kLongest && is_name(text_[start - 1])) --start;
  name.text = text_.substr(start, end - start);
  name.is_first = start == 0;
  while (start > floor_ && is_blank(text_[start - 1])) name.before = text_[--start];
  if (start > floor_ && (!is_blank(name.before) || is_in(text_[start - 1], ";,{&")))
    name.before = text_[start - 1];
  return name;
}

// Where an unquoted value ends: what ends it depends on what the name follows.
std::size_t Scanner::end_of_value(std::size_t start, std::size_t most, const Name& name,
                                  char separator) const noexcept {
  const std::size_t limit = start + std::min(most, text_.size() - start);
  const std::string_view text = text_.substr(0, limit);
  const auto find = [&](std::string_view ends) {
    return std::min(text.find_first_of(ends, start), limit);
  };
  if (separator == ':') return find(name.is_quoted ? " \t\r\n,}]" : "\r\n\"'`");
  if (name.before == '?' || name.before == '&')
    return find(is_command_ ? "&#;|) \t\r\n\"'`" : "&# \t\r\n\"'`");
  if (name.before == ';') return find(";\"'`\r\n");
  if (is_in(name.before, ",{(")) return find(",)}] \t\r\n\"'`");
  if (name.before == '/') return find("/?&# \t\r\n\"'`");
  const std::size_t blank = find(" \t\r\n");
  if (name.is_first || (!is_command_ && name.before == '=')) {
    // --passphrase='correct horse' is one value; PGPASSWORD=x psql -h host is not.
    const bool is_command = name.text[0] != '-' && text.find_first_of("=-/|;&$", blank) != kNone;
    if (!is_command) return limit;
    return std::min(blank, find(";\"'`|"));
  }
  return find(" \t\r\n\"'`;|&)");
}

// The value after a separator, if the name before it announces a secret.
Span Scanner::value_at(std::size_t separator) const noexcept {
  const char c = text_[separator];
  const Name name = name_before(separator);
  if (name.text.empty()) return {};
  NameKind kind = kind_of_name(name.text);
  const bool is_query = c == '=' && (name.before == '?' || name.before == '&');
  if (is_query && kind != NameKind::certain) {
    for (const std::string_view one :
         {"sig", "signature", "key", "x-amz-signature", "auth_key", "sid"})
      if (equals_ignoring_case(name.text, one)) kind = NameKind::certain;
  }
  if (kind == NameKind::harmless) return {};

  std::size_t start = separator + 1;
  if (c == ':' || name.has_blank)
    while (start < text_.size() && is_blank(text_[start])) ++start;
  if (start == text_.size()) return {};
  const bool is_escaped =
      text_[start] == '\\' && start + 1 < text_.size() && is_quote(text_[start + 1]);
  if (is_escaped) ++start;
  const bool is_quoted = is_quote(text_[start]);
  if (name.has_blank && !is_quoted) return {};
  if (c == ':') {
    const bool has_blank = start != separator + 1;
    const bool is_path = name.before == '/' || text_[start] == '/';  // ./token:/run/token:ro
    const bool is_field = name.is_quoted || has_blank || kind == NameKind::certain ||
                          kind == NameKind::key || equals_ignoring_case(name.text, "pass");
    if (is_path || !is_field || (kind == NameKind::opaque && !is_quoted)) return {};
  } else if (text_[start] == '=') {
    return {};  // a comparison
  }
  if (is_quoted) ++start;
  const std::size_t most = kind == NameKind::opaque ? kLongestWord : kNone;
  const std::size_t limit = start + std::min(most, text_.size() - start);
  const std::size_t end = is_quoted ? end_of_quoted(start, limit, is_escaped, text_[start - 1])
                                    : end_of_value(start, most, name, c);
  return is_secret_value(kind, text_.substr(start, end - start)) ? Span{start, end} : Span{};
}

}  // namespace

std::size_t mask_secrets(char* arguments, std::size_t bytes) noexcept {
  Masked masked{arguments};
  Scanner scanner;
  for_each_argument(arguments, bytes, [&](std::size_t start, std::size_t end) {
    const std::string_view argument{arguments + start, end - start};
    scanner.begin(argument);
    std::size_t at = 0;
    for (Span secret; !(secret = scanner.next(at)).empty(); at = secret.end) {
      masked.keep(start + at, start + secret.start);
      masked.mask(secret.end - secret.start);
    }
    masked.keep(start + at, end);
    if (end < bytes) masked.end_argument();
  });
  return masked.written();
}

std::size_t keep_names(char* arguments, std::size_t bytes) noexcept {
  Masked kept{arguments};
  for_each_argument(arguments, bytes, [&](std::size_t start, std::size_t end) {
    const std::string_view argument{arguments + start, end - start};
    std::size_t length = 0;
    if (start == 0) {
      // A process may have rewritten its title: "server: user@host".
      length = std::min(argument.find_first_of(" \t\n"), argument.size());
    } else if (argument.starts_with("--")) {
      while (length < argument.size() && is_name(argument[length])) ++length;
    } else if (argument.size() > 1 && argument[0] == '-') {
      length = std::min<std::size_t>(argument.size(), 2);
    }
    if (start != 0 && length == 0) return;
    kept.keep(start, start + length);
    if (end < bytes) kept.end_argument();
  });
  return kept.written();
}

}  // namespace oomrec::session
