#include "tools/bundles/redact/text_redactor.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "tools/base/text.h"

namespace oomrec::tools::bundles {
namespace {

using session::TableId;

constexpr std::string_view kOmitted = "…";
constexpr std::size_t kShortestName = 3;  // shorter ones also occur in ordinary texts

// An installed file's path is kept from one of these on, so that it is still recognized as
// installed.
constexpr std::array<std::string_view, 5> kInstalled = {"/site-packages/", "/dist-packages/",
                                                        "/lib/python3", "/lib64/python3", "/pypy3"};
// The same on every machine: nothing in them is private.
constexpr std::array<std::string_view, 9> kSystem = {
    "/usr/lib", "/usr/bin/", "/usr/sbin/", "/usr/libexec/",  "/lib/",
    "/lib64/",  "/bin/",     "/sbin/",     "/usr/local/lib/"};

constexpr std::array<std::string_view, 2> kHomes = {"/home/", "/Users/"};

// The user name in a path below a home directory; empty: the path is elsewhere.
std::string_view user_in(std::string_view path) {
  for (const std::string_view homes : kHomes) {
    if (!path.starts_with(homes)) continue;
    path.remove_prefix(homes.size());
    return path.substr(0, path.find('/'));
  }
  return {};
}

bool ends_path(char byte) {
  return std::isspace(static_cast<unsigned char>(byte)) != 0 ||
         std::strchr("'\"`,;()[]{}<>|", byte) != nullptr;
}

bool is_word(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

// Replaces each whole word `word` in `text`.
std::string without(std::string text, std::string_view word) {
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;) {
    const std::size_t end = at + word.size();
    const bool whole =
        (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    if (whole) text.replace(at, word.size(), kOmitted);
    at += whole ? kOmitted.size() : word.size();
  }
  return text;
}

}  // namespace

TextRedactor::TextRedactor(const recording::Recording& recording)
    : working_directory_(recording.text(recording.header().working_directory)) {
  const auto add = [&](std::string_view name) {
    if (name.size() >= kShortestName && name != "root" && name != "localhost" &&
        std::ranges::find(names_, name) == names_.end())
      names_.emplace_back(name);
  };
  const session::Header& header = recording.header();
  const std::string host{header.host, strnlen(header.host, sizeof header.host)};
  add(host);
  add(host.substr(0, host.find('.')));
  for (const session::StringId id :
       {header.working_directory, header.executable, header.dump_directory})
    add(user_in(recording.text(id)));
  for (const auto& module : session::entries<session::Module>(recording.view(), TableId::modules))
    add(user_in(recording.text(module.path)));
  for (const auto& code : session::entries<session::Code>(recording.view(), TableId::codes))
    add(user_in(recording.text(code.file)));
  // Longest first: a name may be a prefix of another.
  std::ranges::sort(names_,
                    [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

bool TextRedactor::is_private(std::string_view component) const {
  return std::ranges::find(names_, component) != names_.end();
}

std::string TextRedactor::path(std::string_view path) const {
  if (path.empty() || path.front() == '<') return std::string{path};
  for (const std::string_view marker : kInstalled) {
    const std::size_t at = path.rfind(marker);
    if (at != path.npos) return text_without_names(path.substr(at));
  }
  for (const std::string_view system : kSystem)
    if (path.starts_with(system)) return text_without_names(path);

  if (working_directory_.size() > 1 && path.starts_with(working_directory_ + "/"))
    path.remove_prefix(working_directory_.size());
  else if (const std::string_view user = user_in(path); !user.empty())
    path.remove_prefix(static_cast<std::size_t>(user.data() - path.data()) + user.size());
  std::vector<std::string_view> parts = split(path, '/');
  std::erase_if(parts, [&](std::string_view part) { return part.empty() || is_private(part); });
  if (parts.empty()) return std::string{kOmitted};
  const std::string_view last = parts.back();
  const std::string shortened =
      parts.size() == 1 ? std::string{last}
                        : std::string{parts[parts.size() - 2]} + "/" + std::string{last};
  return text_without_names(shortened);
}

std::string TextRedactor::text_without_names(std::string_view text) const {
  std::string result{text};
  for (const std::string& name : names_) result = without(std::move(result), name);
  return result;
}

std::string TextRedactor::text(std::string_view text) const {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins_path = text[at] == '/' && (at == 0 || ends_path(text[at - 1]) ||
                                                 text[at - 1] == '=' || text[at - 1] == ':');
    if (!begins_path) {
      result += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !ends_path(text[end])) ++end;
    const std::string_view found = text.substr(at, end - at);
    // Keeps what follows the path, as in "/path/file.py:12" and "/path:". A lone slash is not a
    // path.
    const std::string_view path_part = found.substr(0, found.find(':'));
    result += path_part.size() > 1 ? path(path_part) : std::string{path_part};
    result += found.substr(path_part.size());
    at = end;
  }
  return text_without_names(result);
}

}  // namespace oomrec::tools::bundles
