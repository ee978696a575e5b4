// Every option: one row is its flag, its OOMREC_* variable, its type, its default and its help.
//
// The library reads the variables; `oomrec run` turns flags into variables; --help and
// docs/options.md are generated from the rows. Sizes: a number with K, M, G or T (powers of 1024).
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/vocabulary.h"

namespace oomrec {

namespace session {
enum class Vendor : std::uint8_t;
}

// clang-format off
//  flag              variable               type    default      help
#define OOMREC_OPTIONS(X) \
  X(limit,            OOMREC_LIMIT,          size,   "",          "refuse allocations beyond SIZE (heap + writable anonymous mappings of one process)") \
  X(limit_as,         OOMREC_LIMIT_AS,       size,   "",          "set RLIMIT_AS to SIZE plus what the recorder itself maps; the kernel enforces it") \
  X(fail,             OOMREC_FAIL,           rules,  "",          "refuse chosen allocations, to see whether the program survives: malloc:nth=1000, mmap:p=0.01,seed=7, site=train.py:42, site=libfoo!function; several separated by ;") \
  X(limit_gpu,        OOMREC_LIMIT_GPU,      device_sizes, "",       "device memory a process may allocate: SIZE, or SIZE@DEVICE[,SIZE@DEVICE...], with DEVICE a number, cuda:1 or hip:0; more is refused with the driver's own error") \
  X(mode,             OOMREC_MODE,           mode,   "sampled",   "sampled: every block >= 64 KiB and a sample below; exact: every event; off") \
  X(warn,             OOMREC_WARN,           percent,"95",        "write a bundle when memory reaches PERCENT of a limit that kills (a cgroup's), before the kill; where it is given, of --limit, RLIMIT_AS and GPUs as well; and when the program thrashes; 0: never") \
  X(dump_dir,         OOMREC_DUMP_DIR,       path,   "oom_dumps", "where bundles go; %p pid, %h host, %e program, %t time") \
  X(dump_at_exit,     OOMREC_DUMP_AT_EXIT,   flag,   "0",         "write a bundle when a process ends well, too, that held 16 MiB or more: what it held at its peak, allocated and lost") \
  X(session_dir,      OOMREC_SESSION_DIR,    path,   "",          "where the recording lives while the program runs (default: /dev/shm, else the temporary directory)") \
  X(max_dumps,        OOMREC_MAX_DUMPS,      count,  "5",         "keep at most N bundles in the dump directory; 0: no bound") \
  X(max_total_mb,     OOMREC_MAX_TOTAL_MB,   count,  "256",       "keep at most N MiB of bundles; 0: no bound; the newest is never deleted") \
  X(recording_size,   OOMREC_RECORDING_SIZE, budget, "",          "memory the recorder may use, 512K or more (default 16M sampled, 256M exact, which goes on with samples when it is used up)") \
  X(sample_interval,  OOMREC_SAMPLE_INTERVAL,size,   "512K",      "mean distance of samples below 64 KiB") \
  X(python_objects,   OOMREC_PYTHON_OBJECTS, flag,   "0",         "run Python with PYTHONMALLOC=malloc, so that each small object is seen") \
  X(torch_cpu,        OOMREC_TORCH_CPU,      flag,   "0",         "record PyTorch's tensors in host memory, too (space torch); those of GPUs always are") \
  X(children,         OOMREC_CHILDREN,       flag,   "1",         "record child processes too") \
  X(quiet,            OOMREC_QUIET,          flag,   "0",         "print nothing on stderr") \
  X(bundle_seconds,   OOMREC_BUNDLE_SECONDS, count,  "5",         "give up writing a bundle after N seconds") \
  X(on_oom_exec,      OOMREC_ON_OOM_EXEC,    command,"",          "when memory has run out for the first time, after the bundle, run COMMAND by sh; %p pid, %b the bundle") \
  X(on_oom,           OOMREC_ON_OOM,         action, "continue",  "and then: continue, exit=N (at once, no exit handlers) or abort")
// clang-format on

enum class OptionType : std::uint8_t {
  size,
  count,
  percent,
  flag,
  path,
  mode,
  command,
  action,
  rules,
  device_sizes,
  budget,  // a size of which there is a least one
};

// Less holds no recording worth having: a quarter is the index of live blocks, and the recording of
// a shell that does nothing takes 150 KiB.
inline constexpr std::uint64_t kLeastRecordingBytes = std::uint64_t{512} << 10;

// What becomes of the program at its first refusal.
enum class OnOom : std::uint8_t { go_on, exit, abort };
struct OomAction {
  OnOom what = OnOom::go_on;
  int status = 0;  // of an exit
};

// Values as the recorder uses them. `text` fields point into the environment block.
struct Options {
  std::uint64_t limit = 0;
  std::uint64_t limit_as = 0;
  const char* fail = "";       // understood: common/options/fault_rules.h
  const char* limit_gpu = "";  // understood: device_limit()
  Mode mode = Mode::sampled;
  std::uint64_t warn = 95;
  bool warn_named = false;  // the user chose it
  const char* dump_dir = "oom_dumps";
  bool dump_dir_named = false;  // the user chose it
  const char* session_dir = "";
  std::uint64_t max_dumps = 5;
  std::uint64_t max_total_mb = 256;
  std::uint64_t recording_size = 0;
  std::uint64_t sample_interval = 512 * 1024;
  bool python_objects = false;
  bool torch_cpu = false;
  bool dump_at_exit = false;
  bool children = true;
  bool quiet = false;
  std::uint64_t bundle_seconds = 5;
  const char* on_oom_exec = "";
  OomAction on_oom;
};

// Parses "64", "512K", "1.5G"; false for an unknown suffix, a sign, an overflow, or no digits.
// Lower-case suffixes are accepted.
bool parse_size(std::string_view text, std::uint64_t& bytes) noexcept;

// What `text` of --limit-gpu says for a device: the size that names it with its vendor (cuda:1),
// else its number alone, else the one without a device; 0: none.
std::uint64_t device_limit(std::string_view text, session::Vendor vendor, int ordinal) noexcept;

// Bad values; both texts are static or in the environment.
struct OptionProblem {
  const char* variable = nullptr;
  const char* value = nullptr;
};
class OptionProblems {
 public:
  void add(const OptionProblem& problem) noexcept {
    if (count_ < kOptions) problems_[count_++] = problem;
  }
  bool empty() const noexcept { return count_ == 0; }
  const OptionProblem* begin() const noexcept { return problems_; }
  const OptionProblem* end() const noexcept { return problems_ + count_; }

 private:
#define X(field, name, type, fallback, help) +1
  static constexpr unsigned kOptions = OOMREC_OPTIONS(X);
#undef X
  OptionProblem problems_[kOptions];
  unsigned count_ = 0;
};

// Reads the OOMREC_* variables from `environment` (NULL-terminated "NAME=value" array). A bad one
// is in `problems` and keeps its default; an empty value means "not set". Allocates nothing.
Options read_options(const char* const* environment, OptionProblems& problems) noexcept;

// What the values of `variable` look like, in words for an error message; empty for an unknown one.
std::string_view accepted_by(std::string_view variable) noexcept;

}  // namespace oomrec
