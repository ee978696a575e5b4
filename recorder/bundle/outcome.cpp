// The outcome of a bundle is known later than the bundle, and so is how often its request was
// repeated: metadata.json is written again, with other values in their places, and renamed over the
// old one.
//
// Both stand in the file's first bytes, their keys cannot occur inside a string (there the quotes
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

// Another text for a part of the file's beginning; `at` is empty where there is nothing to replace.
struct Change {
  std::string_view at;
  std::string_view to;
};

// The value of `key` within `text`, a number or what is between its quotes; empty when it is not
// there.
std::string_view value_of(std::string_view text, std::string_view key) noexcept {
  const auto at = text.find(key);
  if (at == std::string_view::npos) return {};
  const auto begin = text.find_first_not_of(" \"", at + key.size());
  const auto end = text.find_first_of("\",}\n", begin);
  return end == std::string_view::npos ? std::string_view{} : text.substr(begin, end - begin);
}

// Reads into `work.text` until it is full or the file ends. Bytes, or minus an errno.
long read_some(int from, Workspace& work) noexcept {
  std::size_t got = 0;
  while (got < sizeof work.text) {
    const long bytes = sys::call(SYS_read, from, reinterpret_cast<long>(work.text + got),
                                 static_cast<long>(sizeof work.text - got));
    if (bytes == -EINTR) continue;
    if (bytes < 0) return bytes;
    if (bytes == 0) break;
    got += static_cast<std::size_t>(bytes);
  }
  return static_cast<long>(got);
}

// Copies `from` to `to` with other values. 0 or minus an errno.
int copy_with(int from, int to, std::string_view outcome, std::string_view repeats,
              Workspace& work) noexcept {
  long bytes = read_some(from, work);
  if (bytes < 0) return static_cast<int>(bytes);
  std::string_view rest{work.text, static_cast<std::size_t>(bytes)};
  Change changes[] = {{value_of(rest, "\"outcome\":"), outcome}, {}};
  if (changes[0].at.empty()) return -EINVAL;
  if (!repeats.empty()) changes[1] = {value_of(rest, "\"repeats\":"), repeats};
  for (const Change& change : changes) {
    if (change.at.empty()) continue;
    const auto head = static_cast<std::size_t>(change.at.data() - rest.data());
    int result = sys::write_all(to, rest.data(), head);
    if (result == 0) result = sys::write_all(to, change.to.data(), change.to.size());
    if (result < 0) return result;
    rest.remove_prefix(head + change.at.size());
  }
  int result = sys::write_all(to, rest.data(), rest.size());
  while (result == 0 && (bytes = read_some(from, work)) > 0)
    result = sys::write_all(to, work.text, static_cast<std::size_t>(bytes));
  return result < 0 ? result : static_cast<int>(bytes < 0 ? bytes : 0);
}

int replace_in(int directory, std::string_view outcome, std::string_view repeats,
               Workspace& work) noexcept {
  const int from = sys::open_at(directory, kFile, O_RDONLY | O_NOFOLLOW);
  if (from < 0) return from;
  sys::unlink_at(directory, kTemporary, 0);  // of a writer that died
  const int to =
      sys::open_at(directory, kTemporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  int result = to;
  if (to >= 0) {
    result = copy_with(from, to, outcome, repeats, work);
    if (result == 0) result = sys::sync(to);
    sys::close(to);
    if (result == 0) result = sys::rename_at(directory, kTemporary, kFile);
    if (result < 0) sys::unlink_at(directory, kTemporary, 0);
  }
  sys::close(from);
  return result;
}

}  // namespace

std::uint32_t repeats_of(const session::View& view, std::uint64_t failure) noexcept {
  session::Failure entry{};
  return failure != 0 && view.read(session::TableId::failures, failure, entry)
             ? entry.repeats.load(std::memory_order_relaxed)
             : kRepeatsUnknown;
}

bool complete_outcome(InHook, const char* path, const Completion& completion,
                      Workspace& work) noexcept {
  char buffer[32];
  char digits[24];
  const std::string_view outcome = outcome_text(completion.outcome, completion.value, buffer);
  Text repeats{digits};
  if (completion.repeats != kRepeatsUnknown) repeats.number(completion.repeats);
  const int directory = sys::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (directory < 0) return false;
  const int result = replace_in(directory, outcome, repeats.view(), work);
  sys::close(directory);
  return result == 0;
}

}  // namespace oomrec::bundle
