// The files of a bundle, one function each, and what they are given. Private to this folder.
//
// Every function writes its file whole or returns false with job.error set; none leaves a
// descriptor open. Order: recording and events first (they decide how much is left out), manifest
// last.
#pragma once

#include <cstdint>
#include <span>

#include "common/bundle/bundle.h"
#include "common/text/json_writer.h"

namespace oomrec::bundle {

// What was left out, so that the bundle stays below the bound of its directory.
enum class Reduction : std::uint8_t {
  none,
  without_events,
  largest_stacks,       // and no events
  without_checkpoints,  // likewise, and none of those
};

struct Job {
  const session::View& view;
  const Cause& cause;
  Workspace& work;
  std::uint64_t max_bytes;   // of the bundle; 0: no bound
  std::uint64_t created_ns;  // realtime
  int dump_directory = -1;   // descriptor of the directory of all bundles
  int directory = -1;        // likewise, of the temporary directory
  bool frugal = false;       // of page cache: near a cgroup's limit what is written counts, too
  Reduction reduction = Reduction::none;
  std::uint64_t event_count = 0;
  std::uint64_t bytes = 0;  // written so far
  int error = 0;            // the first errno
};

// A JSON file being written: `json()` until `done()`.
class JsonFile {
 public:
  JsonFile(InHook, Job&, const char* name) noexcept;
  ~JsonFile();
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  text::JsonWriter& json() noexcept { return json_; }
  bool done() noexcept;  // whole and written

 private:
  Job& job_;
  const int fd_;
  text::JsonWriter json_;
};

// A new file in the temporary directory: a descriptor, or -1 with job.error set.
int create_file(Job&, const char* name) noexcept;

bool write_recording(InHook, Job&) noexcept;    // recording.cpp; decides job.reduction
bool write_events(InHook, Job&) noexcept;       // events.cpp; sets job.event_count
bool write_environment(InHook, Job&) noexcept;  // environment.cpp
bool write_symbols(InHook, Job&) noexcept;      // symbols.cpp
bool write_processes(InHook, Job&) noexcept;    // processes.cpp
bool write_metadata(InHook, Job&) noexcept;     // metadata.cpp
bool write_manifest(InHook, Job&) noexcept;     // manifest.cpp

// Values in metadata.json: what the program says of an exception, in the order of the file, after
// "context" and before "custom_metadata".
struct TextKey {
  std::string_view key;
  std::string_view text::ExceptionTexts::*text;
};
inline constexpr TextKey kTextKeys[] = {
    {"exception_type", &text::ExceptionTexts::type},
    {"exception_module", &text::ExceptionTexts::module},
    {"exception_message", &text::ExceptionTexts::message},
    {"exception_traceback", &text::ExceptionTexts::traceback},
};
void write_verdict(text::JsonWriter&, const verdict::Verdict&) noexcept;
void write_limit(text::JsonWriter&, const verdict::Verdict&) noexcept;

void write_crash(InHook, text::JsonWriter&, const session::View&,
                 text::ExportedName) noexcept;  // likewise

inline constexpr const char* kFileNames[] = {
    "manifest.json", "metadata.json",  "events.json",      "environment.json",
    "symbols.json",  "processes.json", "recording.oomrec",
};
// The names in manifest.json, with that of objects.json where there is one.
void write_names(text::JsonWriter&, bool with_objects) noexcept;

inline bool has_objects(const Job& job) noexcept {
  return job.cause.texts != nullptr && job.cause.texts->objects.data() != nullptr;
}

inline constexpr std::uint64_t kMaxEvents = 10'000;

// Realtime of a moment of the session's clock.
std::uint64_t realtime_of(const session::View&, std::uint64_t monotonic_ns) noexcept;

// "cpu", "cuda" or "rocm": of a space, which PyTorch's does not say without its device (entry in
// `devices`, 0: none), and of what a bundle is about.
std::string_view backend_of(const session::View&, Space, std::uint32_t device) noexcept;
std::string_view backend_of(const Job&) noexcept;

// The memory that a bundle is about: of the refused request, or of the device that is near to
// refusing; else the host's.
struct Subject {
  Space space = Space::heap;
  std::uint32_t device = 0;  // entry in `devices`; 0: none, or not known whose
};
Subject subject_of(const session::View&, const Cause&, const verdict::Verdict&) noexcept;

}  // namespace oomrec::bundle
