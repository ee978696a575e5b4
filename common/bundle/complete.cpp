// Completes a bundle that was written earlier. Each JSON file is copied with some values replaced,
// and renamed over the old one; some fields of the recording's header are overwritten.
//
// No parser is needed: a quoted key cannot occur inside a string, where quotes are escaped. Only
// custom_metadata, which the program supplies, could contain one, and it comes after every key
// searched for. Everything else is copied unchanged, including what a newer version added.
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "common/bundle/bundle.h"
#include "common/bundle/files.h"
#include "common/facts/account.h"
#include "common/facts/writer.h"
#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

// "verdict": as it stands in the file.
class Key {
 public:
  explicit Key(std::string_view name) noexcept { text_.add('"').add(name).add("\":"); }
  std::string_view view() const noexcept { return text_.view(); }

 private:
  char buffer_[40];
  text::Text text_{buffer_};
};

// Opens a file of the bundle. A FIFO or device in its place would block us: -EINVAL.
int open_regular(int directory, const char* name, int flags) noexcept {
  const int fd = system::open_at(directory, name, flags | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return fd;
  struct stat status {};
  const long result = system::fallible_call(SYS_fstat, fd, reinterpret_cast<long>(&status));
  if (result == 0 && S_ISREG(status.st_mode)) return fd;
  system::close(fd);
  return result < 0 ? static_cast<int>(result) : -EINVAL;
}

// A JSON file being copied with some values replaced.
class Rewrite {
 public:
  Rewrite(InHook hook, int directory, const char* name, Workspace& work) noexcept
      : hook_(hook), directory_(directory), name_(name), work_(work) {
    text::Text{temporary_}.add('.').add(name).add(".partial");
    from_ = open_regular(directory, name, O_RDONLY);
    fail(from_);
    if (error_ == 0) {
      system::unlink_at(directory, temporary_, 0);  // left by a writer that died
      to_ = system::open_at(directory, temporary_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
      fail(to_);
    }
    const long bytes = error_ == 0 ? read_some(0) : 0;
    fail(static_cast<int>(bytes));
    if (error_ == 0) rest_ = {work.text, static_cast<std::size_t>(bytes)};
  }
  ~Rewrite() {
    if (from_ >= 0) system::close(from_);
    if (to_ >= 0) system::close(to_);
    if (to_ >= 0 && !renamed_) system::unlink_at(directory_, temporary_, 0);
  }
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;

  // Replaces the next value of `name` by what write(JsonWriter&) writes. The key must be in the
  // file's first bytes (work.text). False: it is not.
  template <class Write>
  bool replace(std::string_view name, Write&& write) noexcept {
    const Key key{name};
    const auto found = rest_.find(key.view());
    if (error_ != 0 || found == std::string_view::npos ||
        found > rest_.find(Key{facts::kCustomMetadataKey}.view()))
      return false;
    return replace_at(found + key.view().size(), write);
  }

  // The same with a section of the bundle.
  template <class Fact>
  bool replace(const Fact& fact) noexcept {
    return replace(facts::Section<Fact>::key,
                   [&](text::JsonWriter& json) { facts::write(json, fact); });
  }

  // The same anywhere in the file. False: there is no such key, and the file has been copied to its
  // end.
  template <class Write>
  bool replace_anywhere(std::string_view name, Write&& write) noexcept {
    const Key key{name};
    auto found = rest_.find(key.view());
    while (error_ == 0 && found == std::string_view::npos && read_more(key.view().size() - 1))
      found = rest_.find(key.view());
    return error_ == 0 && found != std::string_view::npos &&
           replace_at(found + key.view().size(), write);
  }

  // Copies the rest and replaces the old file. True on success.
  bool finish() noexcept {
    while (error_ == 0 && read_more(0)) {
    }
    if (error_ == 0) fail(system::sync(to_));
    if (error_ == 0) fail(system::rename_at(directory_, temporary_, name_));
    renamed_ = error_ == 0;
    return renamed_;
  }

 private:
  template <class Write>
  bool replace_at(std::size_t at, Write&& write) noexcept {
    put(rest_.substr(0, at));
    rest_.remove_prefix(at);
    put(" ");
    while (peek() == ' ') rest_.remove_prefix(1);
    skip_value();
    text::JsonWriter json{hook_, to_, work_.json, sizeof work_.json, 1};
    write(json);
    if (!json.finish()) fail(-json.error());
    return error_ == 0;
  }

  // The next character to copy or skip; 0 at the end.
  char peek() noexcept { return !rest_.empty() || read_more(0) ? rest_.front() : '\0'; }

  // Skips one JSON value.
  void skip_value() noexcept {
    unsigned depth = 0;
    bool quoted = false;
    for (char c = peek(); c != '\0'; c = peek()) {
      const bool closes = !quoted && (c == '}' || c == ']');
      if (depth == 0 && (closes || (!quoted && (c == ',' || c == '\n')))) return;
      rest_.remove_prefix(1);
      if (quoted && c == '\\' && peek() != '\0') rest_.remove_prefix(1);
      if (c == '"') quoted = !quoted;
      if (!quoted && (c == '{' || c == '[')) ++depth;
      if (closes && --depth == 0) return;
    }
  }

  // Copies all of rest_ except its last `kept` bytes, then reads more behind those. False: the file
  // has ended.
  bool read_more(std::size_t kept) noexcept {
    kept = std::min(kept, rest_.size());
    put(rest_.substr(0, rest_.size() - kept));
    std::memmove(work_.text, rest_.data() + rest_.size() - kept, kept);
    const long bytes = error_ == 0 ? read_some(kept) : 0;
    fail(static_cast<int>(bytes));
    rest_ = {work_.text, kept + (bytes > 0 ? static_cast<std::size_t>(bytes) : 0)};
    return bytes > 0;
  }

  // Keeps the first error; ignores results that are none.
  void fail(int result) noexcept {
    if (error_ == 0 && result < 0) error_ = result;
  }
  void put(std::string_view text) noexcept {
    if (error_ == 0) fail(system::write_all(to_, text.data(), text.size()));
  }

  // Reads into work_.text after its first `behind` bytes, until it is full or the file ends.
  // Returns bytes, or minus an errno.
  long read_some(std::size_t behind) noexcept {
    std::size_t got = behind;
    while (got < sizeof work_.text) {
      const long bytes =
          system::fallible_call(SYS_read, from_, reinterpret_cast<long>(work_.text + got),
                                static_cast<long>(sizeof work_.text - got));
      if (bytes == -EINTR) continue;
      if (bytes < 0) return bytes;
      if (bytes == 0) break;
      got += static_cast<std::size_t>(bytes);
    }
    return static_cast<long>(got - behind);
  }

  InHook hook_;
  int directory_;
  const char* name_;
  Workspace& work_;
  int from_ = -1;
  int to_ = -1;
  int error_ = 0;
  bool renamed_ = false;
  char temporary_[64] = {};
  std::string_view rest_;
};

// Overwrites fields of the recording's header.
class HeaderFields {
 public:
  explicit HeaderFields(int fd) noexcept : fd_(fd) {}
  template <class Field>
  void write(const Field& field, std::size_t offset) noexcept {
    if (result_ == 0) result_ = system::write_all_at(fd_, &field, sizeof field, offset);
  }
  bool written() const noexcept { return result_ == 0; }

 private:
  int fd_;
  int result_ = 0;
};

bool complete_recording(int directory, const Completion& completion) noexcept {
  if (completion.crash == nullptr && completion.end == nullptr && !completion.reserve.has_limit)
    return true;
  const int fd = open_regular(directory, "recording.oomrec", O_WRONLY);
  if (fd < 0) return false;
  HeaderFields header{fd};
  if (completion.crash != nullptr) {
    header.write(*completion.crash, offsetof(session::Header, crash));
    if (completion.crash_session != nullptr)
      header.write(completion.crash_session->header().crash_link,
                   offsetof(session::Header, crash_link));
  }
  if (completion.end != nullptr) {
    header.write(completion.end->death, offsetof(session::Header, death));
    header.write(completion.end->levels, offsetof(session::Header, end_levels));
    header.write(completion.end->account, offsetof(session::Header, account));
  }
  if (completion.reserve.has_limit) {
    header.write(completion.reserve.bytes, offsetof(session::Header, limit_reserve_bytes));
    header.write(completion.reserve.used_bytes,
                 offsetof(session::Header, limit_reserve_used_bytes));
  }
  system::close(fd);
  return header.written();
}

bool complete_manifest(InHook hook, int directory, const Completion& completion,
                       Workspace& work) noexcept {
  if (completion.verdict == nullptr) return true;
  Rewrite manifest{hook, directory, "manifest.json", work};
  if (!manifest.replace(facts::kVerdictKey, [&](text::JsonWriter& json) {
        json.string(name_of(completion.verdict->code));
      }))
    return false;
  manifest.replace(facts::kCertaintyKey, [&](text::JsonWriter& json) {
    json.string_or_null(certainty_word(*completion.verdict));
  });
  return manifest.finish();
}

bool complete_metadata(InHook hook, int directory, const Completion& completion,
                       Workspace& work) noexcept {
  char outcome[32];
  Rewrite metadata{hook, directory, "metadata.json", work};
  const bool found = metadata.replace(facts::kOutcomeKey, [&](text::JsonWriter& json) {
    json.string(outcome_text(completion.outcome, completion.value, outcome));
  });
  if (completion.verdict != nullptr) metadata.replace(*completion.verdict);
  if (completion.crash_session != nullptr)
    metadata.replace(crash_of(hook, *completion.crash_session, completion.exported_name));
  if (completion.verdict != nullptr) metadata.replace(completion.verdict->limit);
  if (completion.reserve.has_limit) metadata.replace(completion.reserve);
  if (completion.end != nullptr) metadata.replace(completion.end->account);
  if (completion.repeats != kRepeatsUnknown)
    metadata.replace(facts::kRepeatsKey,
                     [&](text::JsonWriter& json) { json.number(completion.repeats); });
  if (completion.aftershocks.count != 0) metadata.replace(completion.aftershocks);
  return found && metadata.finish();
}

// An earlier file stays until the new one is complete.
bool write_objects(int directory, std::string_view objects) noexcept {
  constexpr const char* kTemporary = ".objects.json.partial";
  system::unlink_at(directory, kTemporary, 0);
  const int fd =
      system::open_at(directory, kTemporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  int result = system::write_all(fd, objects.data(), objects.size());
  if (result >= 0) result = system::sync(fd);
  system::close(fd);
  if (result >= 0) result = system::rename_at(directory, kTemporary, text::kObjectsFile);
  if (result < 0) system::unlink_at(directory, kTemporary, 0);
  return result >= 0;
}

bool complete_file_names(InHook hook, int directory, Workspace& work) noexcept {
  Rewrite manifest{hook, directory, "manifest.json", work};
  return manifest.replace(facts::kFilesKey, [](text::JsonWriter& json) {
    FileNames{ObjectsFile::present}.write(json);
  }) && manifest.finish();
}

bool complete_exception_texts(InHook hook, int directory, const text::ExceptionTexts& texts,
                              Workspace& work) noexcept {
  Rewrite metadata{hook, directory, "metadata.json", work};
  if (texts.context.data() != nullptr &&
      !metadata.replace_anywhere(facts::kContextKey,
                                 [&](text::JsonWriter& json) { json.string(texts.context); }))
    return false;
  const ExceptionFields exception = exception_fields(texts);
  for (std::size_t i = 0; i < exception.size(); ++i) {
    if (!metadata.replace_anywhere(facts::kExceptionKeys[i],
                                   [&](text::JsonWriter& json) { exception[i].write(json); }))
      return false;
  }
  return metadata.replace_anywhere(facts::kCustomMetadataKey, [&](text::JsonWriter& json) {
    text::write_custom_metadata(json, texts.metadata);
  }) && metadata.finish();
}

}  // namespace

std::uint32_t repeats_of(const session::View& view, std::uint64_t failure) noexcept {
  session::Failure entry{};
  return failure != 0 && view.read(session::TableId::failures, failure, entry)
             ? entry.repeats.load(std::memory_order_relaxed)
             : kRepeatsUnknown;
}

facts::Aftershocks aftershocks_of(const session::View& view, std::uint64_t failure) noexcept {
  facts::Aftershocks found;
  session::Failure root{}, entry{};
  if (failure == 0 || !view.read(session::TableId::failures, failure, root) || root.bundle == 0)
    return found;
  for (std::uint64_t i = 1; i < view.count(session::TableId::failures); ++i) {
    if (!view.read(session::TableId::failures, i, entry) || entry.bundle != root.bundle ||
        (entry.flags & session::kFailureAftershock) == 0)
      continue;
    found.count += 1 + std::uint64_t{entry.repeats};
    const std::uint64_t last_ns = entry.last_ns;
    if (last_ns > root.time_ns)
      found.last_after_ms = std::max(found.last_after_ms, (last_ns - root.time_ns) / 1'000'000);
  }
  return found;
}

Completion completion_of(const session::View& view, std::uint64_t failure, OutcomeKind outcome,
                         std::int32_t value) noexcept {
  return {outcome, value, repeats_of(view, failure), aftershocks_of(view, failure),
          session::limit_reserve_of(view.header())};
}

bool complete(InHook hook, const char* path, const Completion& completion,
              Workspace& work) noexcept {
  const int directory = system::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (directory < 0) return false;
  const bool done = complete_recording(directory, completion) &&
                    complete_manifest(hook, directory, completion, work) &&
                    complete_metadata(hook, directory, completion, work);
  system::close(directory);
  return done;
}

bool complete_exception(InHook hook, const char* path, const text::ExceptionTexts& texts,
                        Workspace& work) noexcept {
  const int directory = system::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (directory < 0) return false;
  const bool has_objects = texts.objects.data() != nullptr;
  const bool objects = !has_objects || (write_objects(directory, texts.objects) &&
                                        complete_file_names(hook, directory, work));
  const bool has_texts = complete_exception_texts(hook, directory, texts, work);
  system::close(directory);
  return objects && has_texts;
}

}  // namespace oomrec::bundle
