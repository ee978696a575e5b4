// One function for each file of a bundle, and their common state. Private to this folder.
//
// Each function writes its file completely, or returns false with job.error set; none leaks a
// descriptor. The recording and the events come first, because they decide what to leave out; the
// manifest comes last.
#pragma once

#include <cstdint>
#include <span>

#include "common/bundle/bundle.h"
#include "common/facts/end.h"
#include "common/facts/manifest.h"
#include "common/facts/metadata.h"
#include "common/text/json_writer.h"

namespace oomrec::bundle {

// What was left out to keep the bundle below the size limit of its directory.
enum class Reduction : std::uint8_t {
  none,
  without_events,
  largest_stacks,       // and without events
  without_checkpoints,  // the largest stacks, no events, no checkpoints
};

struct Job {
  const session::View& view;
  const Cause& cause;
  Workspace& work;
  std::uint64_t max_bytes;       // of the bundle; 0: no bound
  std::uint64_t created_ns;      // realtime
  int dump_directory = -1;       // descriptor of the directory of all bundles
  int directory = -1;            // descriptor of the temporary directory
  bool drop_page_cache = false;  // near a cgroup's limit, where page cache counts too
  Reduction reduction = Reduction::none;
  std::uint64_t event_count = 0;
  std::uint64_t bytes = 0;  // written so far
  char tree[96] = {};       // key of the first recorded process of its process tree
  int error = 0;            // the first errno
};

// A JSON file being written: write to `json()`, then call `done()`.
class JsonFile {
 public:
  JsonFile(InHook, Job&, const char* name) noexcept;
  ~JsonFile();
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  text::JsonWriter& json() noexcept { return json_; }
  bool done() noexcept;  // true: completely written

 private:
  Job& job_;
  const int fd_;
  text::JsonWriter json_;
};

// Creates a file in the temporary directory. Returns a descriptor, or -1 with job.error set.
int create_file(Job&, const char* name) noexcept;

bool write_recording(InHook, Job&) noexcept;    // recording.cpp; decides job.reduction
bool write_events(InHook, Job&) noexcept;       // events.cpp; sets job.event_count
bool write_environment(InHook, Job&) noexcept;  // environment.cpp
bool write_symbols(InHook, Job&) noexcept;      // symbols.cpp
bool write_processes(InHook, Job&) noexcept;    // processes.cpp
bool write_metadata(InHook, Job&) noexcept;     // metadata.cpp
bool write_manifest(InHook, Job&) noexcept;     // manifest.cpp

// A text of the program's; null without data().
struct ProgramText {
  std::string_view text;
  void write(text::JsonWriter& json) const noexcept { text::write_text(json, text); }
};
// The exception's, as facts::kExceptionKeys names them.
using ExceptionFields = std::array<ProgramText, facts::kExceptionKeys.size()>;
inline ExceptionFields exception_fields(const text::ExceptionTexts& texts) noexcept {
  return {{{texts.type}, {texts.module}, {texts.message}, {texts.traceback}}};
}

// The verdict's certainty; empty if it claims nothing.
std::string_view certainty_word(const verdict::Verdict&) noexcept;

// The crash in a session's header.
struct CrashFrames {
  InHook hook;
  const session::View& view;
  std::span<const std::uint64_t> frames;
  text::ExportedName names;
  void write(text::JsonWriter& json) const noexcept {
    text::write_frames(hook, json, view, frames, names);
  }
};
facts::Crash<CrashFrames> crash_of(InHook, const session::View&, text::ExportedName) noexcept;

inline constexpr const char* kFileNames[] = {
    "manifest.json", "metadata.json",  "events.json",      "environment.json",
    "symbols.json",  "processes.json", "recording.oomrec",
};
// Whether the bundle has an objects.json.
enum class ObjectsFile : std::uint8_t { absent, present };

// The list of files in manifest.json.
struct FileNames {
  ObjectsFile objects = ObjectsFile::absent;
  void write(text::JsonWriter&) const noexcept;
};

inline ObjectsFile objects_file_of(const Job& job) noexcept {
  const bool has_objects = job.cause.texts != nullptr && job.cause.texts->objects.data() != nullptr;
  return has_objects ? ObjectsFile::present : ObjectsFile::absent;
}

inline constexpr std::uint64_t kMaxEvents = 10'000;

// Converts a time of the session's monotonic clock to realtime.
std::uint64_t realtime_of(const session::View&, std::uint64_t monotonic_ns) noexcept;

// "cpu", "cuda" or "rocm": of a space, and of a bundle's subject. For PyTorch's space the device
// decides (entry in `devices`, 0: none).
std::string_view backend_of(const session::View&, Space, std::uint32_t device) noexcept;
std::string_view backend_of(const Job&) noexcept;

// The memory that a bundle is about: that of the failed request, or of the device near its limit;
// otherwise the host's.
struct Subject {
  Space space = Space::heap;
  std::uint32_t device = 0;  // entry in `devices`; 0: none or unknown
};
Subject subject_of(const session::View&, const Cause&, const verdict::Verdict&) noexcept;

}  // namespace oomrec::bundle
