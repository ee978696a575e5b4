// The outcome of a bundle is known later than the bundle: metadata.json is written again, with
// another word in its place, and renamed over the old one.
//
// "outcome" is in the file's first bytes, its key cannot occur inside a string (there the quotes
// are escaped), and all else is copied as it is: no parser, and whatever a newer writer added
// stays.
#include <sys/syscall.h>

#include <cerrno>

#include "recorder/bundle/bundle.h"
#include "recorder/bundle/system.h"
#include "recorder/bundle/text.h"

namespace oomrec::bundle {
namespace {

constexpr const char* kFile = "metadata.json";
constexpr const char* kTemporary = ".metadata.json.partial";

// The value of "outcome" within `text`, without its quotes; empty when it is not there.
std::string_view find_outcome(std::string_view text) noexcept {
  constexpr std::string_view kKey = "\"outcome\":";
  auto begin = text.find(kKey);
  if (begin == std::string_view::npos) return {};
  begin = text.find('"', begin + kKey.size());
  const auto end = begin == std::string_view::npos ? begin : text.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view{}
                                       : text.substr(begin + 1, end - begin - 1);
}

// Copies `from` to `to`, the first outcome in it replaced. 0 or minus an errno.
int copy_with(int from, int to, std::string_view outcome, Workspace& work) noexcept {
  bool replaced = false;
  for (;;) {
    const long bytes = sys::call(SYS_read, from, reinterpret_cast<long>(work.text),
                                 static_cast<long>(sizeof work.text));
    if (bytes == -EINTR) continue;
    if (bytes <= 0) return bytes == 0 && !replaced ? -EINVAL : static_cast<int>(bytes);
    std::string_view rest{work.text, static_cast<std::size_t>(bytes)};
    int result = 0;
    if (!replaced) {
      const std::string_view old = find_outcome(rest);
      if (old.empty()) return -EINVAL;
      const auto head = static_cast<std::size_t>(old.data() - rest.data());
      result = sys::write_all(to, rest.data(), head);
      if (result == 0) result = sys::write_all(to, outcome.data(), outcome.size());
      rest.remove_prefix(head + old.size());
      replaced = true;
    }
    if (result == 0) result = sys::write_all(to, rest.data(), rest.size());
    if (result < 0) return result;
  }
}

int replace_in(int directory, std::string_view outcome, Workspace& work) noexcept {
  const int from = sys::open_at(directory, kFile, O_RDONLY | O_NOFOLLOW);
  if (from < 0) return from;
  sys::unlink_at(directory, kTemporary, 0);  // of a writer that died
  const int to =
      sys::open_at(directory, kTemporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  int result = to;
  if (to >= 0) {
    result = copy_with(from, to, outcome, work);
    if (result == 0) result = sys::sync(to);
    sys::close(to);
    if (result == 0) result = sys::rename_at(directory, kTemporary, kFile);
    if (result < 0) sys::unlink_at(directory, kTemporary, 0);
  }
  sys::close(from);
  return result;
}

}  // namespace

bool complete_outcome(InHook, const char* path, OutcomeKind kind, std::int32_t value,
                      Workspace& work) noexcept {
  char buffer[32];
  const std::string_view outcome = outcome_text(kind, value, buffer);
  const int directory = sys::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (directory < 0) return false;
  const int result = replace_in(directory, outcome, work);
  sys::close(directory);
  return result == 0;
}

}  // namespace oomrec::bundle
