// The parts of the verdict, one file for each kind of evidence, and their helpers. Private to this
// folder.
#pragma once

#include "common/system/units.h"
#include "common/text/text.h"
#include "common/verdict/verdict.h"

namespace oomrec::verdict {

struct DeathFacts;

inline constexpr std::uint64_t kWorthALine = kMiB;  // of evidence

// The evidence about the end, from the recording or on its way into it.
struct End {
  const session::Death& death;
  const session::EndLevels& levels;
  const session::CgroupAccount& account;
};
inline End end_of(const session::Header& header, const session::EndEvidence* found) noexcept {
  return found != nullptr ? End{found->death, found->levels, found->account}
                          : End{header.death, header.end_levels, header.account};
}

// failure.cpp
void explain_failed_request(Verdict&, const session::View&, const session::Failure&) noexcept;

// "numpy asked malloc for 412.0 MiB and was refused: ", from add_request().
void begin_failure(text::Text& summary, const session::View&, const session::Failure&) noexcept;
// A failure that a rule of --fail injected.
void explain_injection(Verdict&, text::Text& summary, const session::View&,
                       const session::Failure&) noexcept;
// Evidence about the host other than limits.
void add_background(Verdict&, const session::Failure&) noexcept;

// device.cpp: a failed request of GPU memory.
void explain_device_failure(Verdict&, const session::View&, const session::Failure&) noexcept;

// near_limit.cpp
void explain_near_limit(Verdict&, const session::View&, const session::Health&) noexcept;
void explain_pressure(Verdict&, const session::View&, const session::Health&) noexcept;

// Memory that was allocated and never touched, if it is worth a line. Neither a cgroup nor the
// machine counts it, but --limit does.
enum class Checked : bool { now, earlier };
void add_untouched(Verdict&, std::uint64_t bytes, bool has_soft_limit, Checked) noexcept;

// death.cpp. `outcome` as in metadata.json.
void explain_death(Verdict&, const session::View&, const End&, std::string_view outcome) noexcept;
bool killed_by_kernel(const session::View&, const End&, std::string_view outcome) noexcept;

// death_evidence.cpp
void add_death_evidence(Verdict&, const DeathFacts&) noexcept;

// "SIGTERM"
void add_signal(text::Text&, int number) noexcept;
// " was killed by SIGTERM", " ended with exit status 1", " ended, exit status unknown,"
void add_end(text::Text&, const session::View&, const End&, std::string_view outcome) noexcept;

// account.cpp
// The kernel counts at least twice the resident memory that recorded blocks explain.
bool is_mostly_unrecorded(const DeathFacts&) noexcept;
// "; it held 1.3 MiB of 101.0 MiB resident"
void add_resident(text::Text& summary, const DeathFacts&) noexcept;
// What the memory of its cgroup was used for.
void add_account(Verdict&, const DeathFacts&) noexcept;

// death_evidence.cpp
bool died_for_shared_memory(const session::View&, const End&, std::string_view outcome) noexcept;
// "/dev/shm has 64.0 MiB, of which 3.2 MiB were free when it needed 20.0 MiB for …"
void add_shared_memory(text::Text&, const DeathFacts&) noexcept;
void add_shared_memory_evidence(Verdict&, const DeathFacts&) noexcept;

// runtime.cpp: a limit of the program's own runtime.
bool reached_runtime_limit(const session::View&) noexcept;
void explain_runtime_limit(Verdict&, const session::View&) noexcept;

// child.cpp
void explain_child(Verdict&, const session::View&, const session::ChildDeath&, const End&,
                   std::string_view outcome) noexcept;

// crash.cpp: the crash in the session's header.
void explain_crash(Verdict&, const session::View&) noexcept;
// "0.2 ms", "11.0 s"
void add_time(text::Text&, std::uint64_t ns) noexcept;

// Saturating addition: kUnlimited on overflow.
inline std::uint64_t add(std::uint64_t a, std::uint64_t b) noexcept {
  return a + b < a ? session::kUnlimited : a + b;
}

// The next multiple of `unit`; kUnlimited if there is none.
inline std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
  const std::uint64_t more = add(bytes, unit - 1);
  return more == session::kUnlimited ? more : more / unit * unit;
}

// What a summary says before and after the name and size of a limit on bytes that refused a
// request.
struct LimitWords {
  std::string_view before, after;
};
inline LimitWords limit_words(std::uint64_t limit, std::uint64_t used,
                              std::uint64_t request) noexcept {
  if (request > limit) return {"that is more than ", " ("};  // whatever else is allocated
  const bool is_used_up = used >= limit - limit / 10;
  return is_used_up ? LimitWords{"", " is reached ("} : LimitWords{"that would exceed ", " ("};
}

// Adds a line of evidence, filled by fill(Text&), if there is space.
template <class Fill>
void add_line(Verdict& verdict, Fill&& fill) noexcept {
  if (verdict.evidence_count == Verdict::kMaxEvidence) return;
  text::Text text{verdict.evidence[verdict.evidence_count++]};
  fill(text);
}

}  // namespace oomrec::verdict
