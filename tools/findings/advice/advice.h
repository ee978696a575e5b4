// Advice: small rules over a recording, each with one sentence for the user.
//
// A rule depends on figures and names only. Its sentence gives the evidence before the advice, so
// that users who know their program can judge it. All input is in AdviceFacts, which tests can fill
// by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/bundles/store/source.h"
#include "tools/findings/leaks/detect.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::findings {

// Sums over all stacks with one subject (statistics.h), in the spaces that add up.
struct SubjectFigures {
  std::string subject;                     // "train.py:31 make_batch"
  std::vector<recording::Location> stack;  // of the largest holder, innermost first
  std::size_t line = 0;                    // position of the subject in `stack`
  std::uint32_t holder = 0;                // entry of the largest one in `holders`
  Space space = Space::heap;               // of the largest one
  std::uint64_t bytes = 0, count = 0;
  std::uint64_t ever_bytes = 0;     // allocated by the same stacks, also what was freed
  std::size_t kept_operations = 0;  // of PyTorch, whose results are kept in step
  bool has_graph_nodes = false;     // of PyTorch's autograd
  std::optional<Growth> growth;     // if it leaks (leaks/detect.h)
};

// The memory limit of a runtime of its own, as its options have it.
struct HeapLimit {
  std::string option;       // "-Xmx", as given; empty: none is given
  std::uint64_t bytes = 0;  // 0: unknown
};

// The limit that the verdict names, and what the process is known to have needed.
struct LimitFacts {
  LimitKind kind = LimitKind::none;
  std::uint64_t limit = 0, used = 0;  // in bytes, or a number of things (is_count_limit)
  std::uint64_t peak_bytes = 0;       // the most that the process is known to have used at once
  std::uint64_t other_bytes = 0;      // of the limited cgroup: memory of other processes
  std::uint64_t ram_bytes = 0, swap_bytes = 0;
  std::uint64_t shared_total_bytes = 0, shared_needed_bytes = 0;  // of a full tmpfs, as mapped
  std::uint64_t cgroup_bytes = 0;           // the lowest limit of its cgroups; 0: none, or unknown
  std::uint64_t unmapped_shared_bytes = 0;  // of its cgroup, as sections::unmapped_shared_bytes()
  std::string program;
  HeapLimit heap;
  std::string allocator_limit;  // "TCMALLOC_HEAP_LIMIT_MB=200"; empty: no variable sets one
};

struct AdviceFacts {
  std::vector<SubjectFigures> held;  // largest first
  std::uint64_t all_bytes = 0;       // of all holders
  std::uint64_t request_bytes = 0;   // of the failed request; 0: none
  std::vector<recording::Location> request_stack;
  std::size_t request_line = 0;   // position of its subject in `request_stack`
  std::uint64_t limit_bytes = 0;  // of the verdict; 0: none, or not in bytes
  VerdictCode verdict = VerdictCode::unknown;
  session::KernelLine kernel_line = session::KernelLine::none;  // about its kill
  LimitFacts limit;
  std::vector<recording::DeviceFigures> devices;
  std::uint64_t rss_bytes = 0, host_bytes = 0;  // resident; live on the host, in all spaces
  // Of the resident memory, where holders weigh that: the heap's that has no holder.
  std::uint64_t unheld_heap_bytes = 0;
  std::size_t threads = 0;
  bool is_python = false;

  double share_of(std::uint64_t bytes) const;  // of all_bytes
};

struct Hint {
  std::string_view rule;
  std::string text;
  std::optional<std::uint32_t> holder;  // entry in `holders`, if the hint is about one
};

struct AdviceRule {
  std::string_view name;
  std::optional<Hint> (*advise)(const AdviceFacts&);  // leaves Hint::rule empty
};
const std::vector<AdviceRule>& advice_rules();

// limit_rules.cpp: which limit to set to which value, or which machine would do. One of them fires
// for each verdict about memory.
std::optional<Hint> raise_limit(const AdviceFacts&);
std::optional<Hint> enlarge_shared_memory(const AdviceFacts&);
std::optional<Hint> delete_shared_files(const AdviceFacts&);

// `leaks`: those of the source's recording, with the same `locations`.
AdviceFacts advice_facts(const bundles::Source& source, const Leaks& leaks);
AdviceFacts advice_facts(const bundles::Source& source);

// The hints of all rules that fire, in the order of advice_rules().
std::vector<Hint> advice_of(const AdviceFacts& facts);

// Advice for a recording. For a job: for the rank that failed first, with its limit and request.
std::vector<Hint> advice_for(const bundles::Source& source);

}  // namespace oomrec::tools::findings
