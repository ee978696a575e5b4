// All options: each row has a flag, its OOMREC_* variable, its type, where it acts, its traits, its
// default and its help.
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

// Not an option: `oomrec run` names in it the process tree that it starts.
inline constexpr const char* kProcessTreeVariable = "OOMREC_PROCESS_TREE";

// The types of values: the parser (options.cpp), how a value is named in the help, the words to
// suggest for it, and how an error describes the valid ones.
//
// clang-format off
//  type           parser               placeholder       words                   accepted
#define OOMREC_OPTION_TYPES(X) \
  X(size,         parse_size,          "SIZE",           "",                     "a size such as 64M or 1.5G (suffixes K M G T)") \
  X(count,        parse_count,         "N",              "",                     "a whole number") \
  X(percent,      parse_percent,       "PERCENT",        "",                     "a whole number from 0 to 100") \
  X(flag,         parse_flag,          "",               "0 1",                  "0 or 1") \
  X(path,         parse_text,          "DIR",            "",                     "a path") \
  X(mode,         parse_mode,          "MODE",           "sampled exact off",    "off, sampled or exact") \
  X(command,      parse_text,          "COMMAND",        "",                     "a command for sh") \
  X(action,       parse_action,        "ACTION",         "continue exit= abort", "continue, exit=N (N up to 255) or abort") \
  X(rules,        parse_rules,         "RULES",          "",                     "rules such as malloc:nth=1000, mmap:p=0.01,seed=7 or site=train.py:42 (docs/options.md)") \
  X(device_sizes, parse_device_sizes,  "SIZE[@DEVICE]",  "",                     "a size such as 64M or 1.5G, or sizes with devices such as 8G@0,4G@1 or 8G@cuda:0,4G@hip:0") \
  X(budget,       parse_budget,        "SIZE",           "",                     "a size of at least 512K, such as 64M (suffixes K M G T)") \
  X(arguments,    parse_arguments,     "WHICH",          "all names",            "all or names")

//  flag              variable                type          scope      traits                     default      help
#define OOMREC_OPTIONS(X) \
  X(limit,            OOMREC_LIMIT,           size,         program,   kRefuses,                  "",          "refuse allocations beyond SIZE in each process (heap + writable anonymous mappings)") \
  X(limit_reserve,    OOMREC_LIMIT_RESERVE,   size,         program,   0,                         "",          "once --limit has refused a request, let small ones use SIZE beyond it, so that the program can report its error (default: 1% of the limit, at least 8M and at most 64M, but no more than a third of it); 0: nothing") \
  X(limit_as,         OOMREC_LIMIT_AS,        size,         launcher,  kRefuses | kFixedAtStart,  "",          "set RLIMIT_AS to SIZE plus the recorder's own mappings; the kernel enforces it") \
  X(fail,             OOMREC_FAIL,            rules,        program,   kRefuses,                  "",          "make chosen allocations fail, to test how the program handles it: malloc:nth=1000, mmap:p=0.01,seed=7, site=train.py:42, site=libfoo!function; separate rules by ;") \
  X(limit_gpu,        OOMREC_LIMIT_GPU,       device_sizes, program,   kRefuses,                  "",          "limit the device memory of each process: SIZE, or SIZE@DEVICE[,SIZE@DEVICE...], with DEVICE a number, cuda:1 or hip:0; requests beyond it fail with the driver's own error") \
  X(mode,             OOMREC_MODE,            mode,         launcher,  0,                         "sampled",   "sampled: every block >= 64 KiB and a sample of smaller ones; exact: every event; off") \
  X(warn,             OOMREC_WARN,            percent,      program,   0,                         "95",        "write a bundle when memory reaches PERCENT of the cgroup's limit, before the kernel kills; if given explicitly, also of --limit, RLIMIT_AS and GPU memory; also when the program thrashes; 0: off") \
  X(dump_dir,         OOMREC_DUMP_DIR,        path,         launcher,  kOwnRuns,                  "oom_dumps", "where to write bundles; %p pid, %h host, %e program, %t time") \
  X(dump_at_exit,     OOMREC_DUMP_AT_EXIT,    flag,         program,   0,                         "0",         "also write a bundle when a process that held 16 MiB or more exits normally: its peak, its total allocations and its leaks") \
  X(session_dir,      OOMREC_SESSION_DIR,     path,         launcher,  kOwnRuns,                  "",          "where to keep the recording while the program runs (default: /dev/shm, else the temporary directory)") \
  X(max_dumps,        OOMREC_MAX_DUMPS,       count,        launcher,  0,                         "5",         "keep at most N bundles in the dump directory; 0: no limit") \
  X(max_total_mb,     OOMREC_MAX_TOTAL_MB,    count,        launcher,  0,                         "256",       "keep at most N MiB of bundles; 0: no limit; the newest is never deleted") \
  X(recording_size,   OOMREC_RECORDING_SIZE,  budget,       recording, 0,                         "",          "memory for the recorder, at least 512K (default 16M sampled, 256M exact, which falls back to sampling when it is used up)") \
  X(sample_interval,  OOMREC_SAMPLE_INTERVAL, size,         recording, 0,                         "512K",      "mean number of bytes between samples of blocks below 64 KiB") \
  X(python_objects,   OOMREC_PYTHON_OBJECTS,  flag,         launcher,  kFixedAtStart,             "0",         "run Python with PYTHONMALLOC=malloc, to record each small object") \
  X(python_sampling,  OOMREC_PYTHON_SAMPLING, flag,         recording, 0,                         "1",         "sample small Python objects through the interpreter's table of allocators; 0: leave the table alone, and count their arenas") \
  X(torch_cpu,        OOMREC_TORCH_CPU,       flag,         recording, 0,                         "0",         "also record PyTorch's tensors in host memory (space torch); those on GPUs are always recorded") \
  X(arguments,        OOMREC_ARGUMENTS,       arguments,    launcher,  kOwnRuns,                  "all",       "which part of command lines to record: all, with passwords and tokens masked; or names: the program and the names of its options, without any value") \
  X(children,         OOMREC_CHILDREN,        flag,         recording, 0,                         "1",         "also record child processes") \
  X(quiet,            OOMREC_QUIET,           flag,         launcher,  0,                         "0",         "print nothing on stderr") \
  X(bundle_seconds,   OOMREC_BUNDLE_SECONDS,  count,        recording, 0,                         "5",         "give up writing a bundle after N seconds") \
  X(on_oom_exec,      OOMREC_ON_OOM_EXEC,     command,      launcher,  0,                         "",          "when memory runs out for the first time, run COMMAND with sh after the bundle is written; %p or $1: pid, %b or $2: the bundle") \
  X(on_oom,           OOMREC_ON_OOM,          action,       program,   0,                         "continue",  "what to do after the first failure: continue, exit=N (at once, without exit handlers) or abort")
// clang-format on

enum class OptionType : std::uint8_t {
#define X(type, parser, placeholder, words, accepted) type,
  OOMREC_OPTION_TYPES(X)
#undef X
};

// Where an option acts.
enum class OptionScope : std::uint8_t {
  recording,  // on what the recorder keeps: nothing is missed in a program without it
  program,    // in the program, by the recorder: without it the option has no effect
  launcher,   // `oomrec run` applies it too, or alone
};

enum OptionTraits : std::uint8_t {
  kRefuses = 1,       // makes requests fail: only a recorder that sees the calls can enforce it
  kFixedAtStart = 2,  // of the program: a running one cannot take it
  kOwnRuns = 4,       // also holds for programs that oomrec runs for itself (simulate)
};

enum class OptionId : std::uint8_t {
#define X(field, variable, type, scope, traits, fallback, help) field,
  OOMREC_OPTIONS(X)
#undef X
};

// Less memory is too small for a useful recording: a quarter is the index of live blocks, and the
// recording of an idle shell takes 150 KiB.
inline constexpr std::uint64_t kMinRecordingBytes = std::uint64_t{512} << 10;

// How much of a command line is recorded.
enum class RecordedArguments : std::uint8_t { all, names };

// What happens to the program after its first failure.
enum class OnOom : std::uint8_t { go_on, exit, abort };
struct OomAction {
  OnOom what = OnOom::go_on;
  int status = 0;  // of `exit`
};

// Values as the recorder uses them. `const char*` fields point into the environment.
struct Options {
  static constexpr std::uint64_t kDefaultReserve = ~std::uint64_t{0};

  std::uint64_t limit = 0;
  std::uint64_t limit_reserve = kDefaultReserve;
  std::uint64_t limit_as = 0;
  const char* fail = "";       // valid: parsed by common/options/fault_rules.h
  const char* limit_gpu = "";  // valid: parsed by device_limit()
  Mode mode = Mode::sampled;
  std::uint64_t warn = 95;
  const char* dump_dir = "oom_dumps";
  const char* session_dir = "";
  std::uint64_t max_dumps = 5;
  std::uint64_t max_total_mb = 256;
  std::uint64_t recording_size = 0;
  std::uint64_t sample_interval = 512 * 1024;
  bool python_objects = false;
  bool python_sampling = true;
  bool torch_cpu = false;
  bool dump_at_exit = false;
  RecordedArguments arguments = RecordedArguments::all;
  bool children = true;
  bool quiet = false;
  std::uint64_t bundle_seconds = 5;
  const char* on_oom_exec = "";
  OomAction on_oom;

  // Whether the user gave it a value.
  bool is_named(OptionId id) const noexcept {
    return (named_ >> static_cast<unsigned>(id) & 1) != 0;
  }
  void set_named(OptionId id) noexcept { named_ |= std::uint32_t{1} << static_cast<unsigned>(id); }

 private:
  std::uint32_t named_ = 0;  // by OptionId
};

// Whether the user has chosen that the option does something: not if it is off, or as by default.
bool is_chosen(const Options& options, OptionId id) noexcept;

// Turns off the options with this trait.
void turn_off(Options& options, OptionTraits trait) noexcept;

// Parses "64", "512K", "1.5G"; false for an unknown suffix, a sign, an overflow, or no digits.
// Lower-case suffixes are accepted.
bool parse_size(std::string_view text, std::uint64_t& bytes) noexcept;

// The limit that `text` of --limit-gpu sets for a device: the size with its vendor and number
// (cuda:1), else with its number, else the one without a device; 0: none.
std::uint64_t device_limit(std::string_view text, session::Vendor vendor, int ordinal) noexcept;

// An invalid value; both texts are static or in the environment.
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
#define X(field, variable, type, scope, traits, fallback, help) +1
  static constexpr unsigned kOptions = OOMREC_OPTIONS(X);
#undef X
  OptionProblem problems_[kOptions];
  unsigned count_ = 0;
};

// Reads the OOMREC_* variables from `environment` (NULL-terminated "NAME=value" array). An invalid
// value is added to `problems` and keeps the default; an empty one means "not set". Allocates
// nothing.
Options read_options(const char* const* environment, OptionProblems& problems) noexcept;

// Describes the valid values of `variable` for an error message; empty for an unknown one.
std::string_view accepted_by(std::string_view variable) noexcept;

}  // namespace oomrec
