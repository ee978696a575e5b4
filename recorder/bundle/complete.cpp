// What is known of a bundle later than the bundle: its JSON files are written again, with other
// values in their places, and renamed over the old ones; its recording gets two fields of its
// header.
//
// The values stand in the files' first bytes, and their keys cannot occur inside a string (there
// the quotes are escaped). All else is copied as it is: no parser, and whatever a newer writer
// added stays.
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

#include "recorder/bundle/bundle.h"
#include "recorder/bundle/files.h"
#include "recorder/bundle/system.h"
#include "recorder/bundle/text.h"

namespace oomrec::bundle {
namespace {

// Bytes of the JSON value that `text` begins with.
std::size_t value_bytes(std::string_view text) noexcept {
  unsigned depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;
      if (--depth == 0) return at + 1;
      continue;
    } else if (depth == 0 && (c == ',' || c == '\n')) {
      return at;
    }
  }
  return text.size();
}

// A JSON file on its way to a new one.
class Rewrite {
 public:
  Rewrite(InHook hook, int directory, const char* name, Workspace& work) noexcept
      : hook_(hook), directory_(directory), name_(name), work_(work) {
    Text{temporary_}.add('.').add(name).add(".partial");
    from_ = sys::open_at(directory, name, O_RDONLY | O_NOFOLLOW);
    fail(from_);
    if (error_ == 0) {
      sys::unlink_at(directory, temporary_, 0);  // of a writer that died
      to_ = sys::open_at(directory, temporary_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
      fail(to_);
    }
    const long bytes = error_ == 0 ? read_some() : 0;
    fail(static_cast<int>(bytes));
    if (error_ == 0) rest_ = {work.text, static_cast<std::size_t>(bytes)};
  }
  ~Rewrite() {
    if (from_ >= 0) sys::close(from_);
    if (to_ >= 0) sys::close(to_);
  }
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;

  // Puts what write(JsonWriter&) writes in the place of the next value of `key`. False: there is
  // none.
  template <class Write>
  bool replace(std::string_view key, Write&& write) noexcept {
    const auto found = rest_.find(key);
    if (error_ != 0 || found == std::string_view::npos) return false;
    const auto at = rest_.find_first_not_of(' ', found + key.size());
    if (at == std::string_view::npos) return false;
    put(rest_.substr(0, at));
    rest_.remove_prefix(at);
    rest_.remove_prefix(value_bytes(rest_));
    JsonWriter json{hook_, to_, work_.json, sizeof work_.json, 1};
    write(json);
    if (!json.finish()) fail(-json.error());
    return true;
  }

  // Copies the rest and takes the old file's place. True when that is done.
  bool finish() noexcept {
    put(rest_);
    for (long bytes = 0; error_ == 0 && (bytes = read_some()) != 0;)
      bytes < 0 ? fail(static_cast<int>(bytes))
                : put({work_.text, static_cast<std::size_t>(bytes)});
    if (error_ == 0) fail(sys::sync(to_));
    if (error_ == 0) fail(sys::rename_at(directory_, temporary_, name_));
    if (error_ != 0 && to_ >= 0) sys::unlink_at(directory_, temporary_, 0);
    return error_ == 0;
  }

 private:
  // Remembers the first error; anything else is none.
  void fail(int result) noexcept {
    if (error_ == 0 && result < 0) error_ = result;
  }
  void put(std::string_view text) noexcept {
    if (error_ == 0) fail(sys::write_all(to_, text.data(), text.size()));
  }

  // Reads into work_.text until it is full or the file ends. Bytes, or minus an errno.
  long read_some() noexcept {
    std::size_t got = 0;
    while (got < sizeof work_.text) {
      const long bytes = sys::call(SYS_read, from_, reinterpret_cast<long>(work_.text + got),
                                   static_cast<long>(sizeof work_.text - got));
      if (bytes == -EINTR) continue;
      if (bytes < 0) return bytes;
      if (bytes == 0) break;
      got += static_cast<std::size_t>(bytes);
    }
    return static_cast<long>(got);
  }

  InHook hook_;
  int directory_;
  const char* name_;
  Workspace& work_;
  int from_ = -1;
  int to_ = -1;
  int error_ = 0;
  char temporary_[64] = {};
  std::string_view rest_;
};

bool complete_recording(int directory, const Completion& completion) noexcept {
  if (completion.crash == nullptr && completion.death == nullptr) return true;
  const int fd = sys::open_at(directory, "recording.oomrec", O_WRONLY | O_NOFOLLOW);
  if (fd < 0) return false;
  int result = 0;
  if (completion.crash != nullptr) {
    result = sys::write_all_at(fd, completion.crash, sizeof *completion.crash,
                               offsetof(session::Header, crash));
  }
  if (result == 0 && completion.death != nullptr) {
    result = sys::write_all_at(fd, completion.death, sizeof *completion.death,
                               offsetof(session::Header, death));
  }
  sys::close(fd);
  return result == 0;
}

bool complete_manifest(InHook hook, int directory, const Completion& completion,
                       Workspace& work) noexcept {
  if (completion.verdict == nullptr) return true;
  Rewrite manifest{hook, directory, "manifest.json", work};
  return manifest.replace("\"verdict\":", [&](JsonWriter& json) {
    json.string(name_of(completion.verdict->code));
  }) && manifest.finish();
}

bool complete_metadata(InHook hook, int directory, const Completion& completion,
                       Workspace& work) noexcept {
  char outcome[32];
  Rewrite metadata{hook, directory, "metadata.json", work};
  const bool found = metadata.replace("\"outcome\":", [&](JsonWriter& json) {
    json.string(outcome_text(completion.outcome, completion.value, outcome));
  });
  if (completion.verdict != nullptr) {
    metadata.replace("\"verdict\":",
                     [&](JsonWriter& json) { write_verdict(json, *completion.verdict); });
  }
  if (completion.crashed != nullptr) {
    metadata.replace("\"crash\":", [&](JsonWriter& json) {
      write_crash(hook, json, *completion.crashed, completion.exported_name);
    });
  }
  if (completion.verdict != nullptr) {
    metadata.replace("\"limit\":",
                     [&](JsonWriter& json) { write_limit(json, *completion.verdict); });
  }
  if (completion.repeats != kRepeatsUnknown) {
    metadata.replace("\"repeats\":", [&](JsonWriter& json) { json.number(completion.repeats); });
  }
  return found && metadata.finish();
}

}  // namespace

std::uint32_t repeats_of(const session::View& view, std::uint64_t failure) noexcept {
  session::Failure entry{};
  return failure != 0 && view.read(session::TableId::failures, failure, entry)
             ? entry.repeats.load(std::memory_order_relaxed)
             : kRepeatsUnknown;
}

bool complete(InHook hook, const char* path, const Completion& completion,
              Workspace& work) noexcept {
  const int directory = sys::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (directory < 0) return false;
  const bool done = complete_recording(directory, completion) &&
                    complete_manifest(hook, directory, completion, work) &&
                    complete_metadata(hook, directory, completion, work);
  sys::close(directory);
  return done;
}

}  // namespace oomrec::bundle
