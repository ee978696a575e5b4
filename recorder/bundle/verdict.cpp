#include "recorder/bundle/verdict.h"

#include "recorder/bundle/frames.h"
#include "recorder/bundle/text.h"

namespace oomrec::bundle {
namespace {

using session::Failure;
using session::kUnlimited;

constexpr std::uint64_t kAddressSpaceBytes = std::uint64_t{1} << 47;
constexpr std::uint64_t kPageBytes = 4096;

// An allocator that is asked for a small block and has none left asks the system for a piece of its
// own size; a limit that leaves less than that is what refused the block.
constexpr std::uint64_t kAllocatorPieceBytes = std::uint64_t{1} << 20;

std::uint64_t add(std::uint64_t a, std::uint64_t b) noexcept {
  return a + b < a ? kUnlimited : a + b;
}

// What the kernel had to find for this request.
std::uint64_t mapped_bytes(const Failure& failure) noexcept {
  if (static_cast<Space>(failure.space) == Space::heap && failure.bytes < kAllocatorPieceBytes)
    return kAllocatorPieceBytes;
  const std::uint64_t rounded = add(failure.bytes, kPageBytes - 1);
  return rounded == kUnlimited ? rounded : rounded / kPageBytes * kPageBytes;
}

// One ceiling as it stood at the refusal.
struct Ceiling {
  VerdictCode code;
  LimitKind kind;
  std::string_view name;
  std::string_view measure;  // what `used` counts
  std::uint64_t limit;       // 0: not known or none
  std::uint64_t used;
  std::uint64_t request;
  bool hit;
  std::uint64_t for_recorder = 0;  // what --limit-as added for the recorder's own memory
};

bool exceeded(std::uint64_t limit, std::uint64_t used, std::uint64_t request) noexcept {
  return limit != 0 && limit != kUnlimited && add(used, request) > limit;
}

void add_evidence(Verdict& verdict, const Ceiling& ceiling) noexcept {
  Text line{verdict.evidence[verdict.evidence_count++]};
  line.add(ceiling.measure).add(' ').size(ceiling.used).add(" + request ").size(ceiling.request);
  line.add(ceiling.hit ? " > " : " <= ").add(ceiling.name).add(' ').size(ceiling.limit);
}

// Of RLIMIT_AS, where it still is what --limit-as made it.
std::uint64_t for_recorder(const session::View& view, std::uint64_t rlimit_as_bytes) noexcept {
  const session::Header& header = view.header();
  const bool by_us =
      header.limit_as_bytes == rlimit_as_bytes && header.limit_as_own_bytes < header.limit_as_bytes;
  return by_us ? header.limit_as_own_bytes : 0;
}

// "numpy asked malloc for 412.0 MiB and was refused: "
void begin_summary(Text& summary, const session::View& view, const Failure& failure) noexcept {
  char name[80];
  summary.add(asker_of(view, failure.node, name));
  const std::string_view api = name_of(static_cast<Api>(failure.api));
  if (failure.bytes == 0) {
    summary.add(" called ").add(api);
  } else if (failure.bytes == kUnlimited) {
    summary.add(" asked ").add(api).add(" for more than a number can say");
  } else {
    summary.add(" asked ").add(api).add(" for ").size(failure.bytes);
  }
  summary.add(" and was refused: ");
}

void explain_size(Verdict& verdict, Text& summary, const Failure& failure) noexcept {
  verdict.code = VerdictCode::request_too_large;
  const std::uint64_t memory = add(failure.ram_bytes, failure.swap_bytes);
  if (failure.bytes >= kAddressSpaceBytes) {
    summary.add("no address space is that large");
  } else {
    summary.add("RAM and swap together are ").size(memory);
  }
}

void explain_failure(Verdict& verdict, Text& summary, const Failure& failure) noexcept {
  verdict.code = VerdictCode::allocation_failed;
  const std::string_view error = error_name(failure.error);
  summary.add("the system had none left for it (");
  summary.add(error.empty() ? "unknown error" : error);
  if (failure.rss_bytes != 0) summary.add(", resident ").size(failure.rss_bytes);
  summary.add(')');
}

// What is known besides the ceilings, while there is room for it.
void add_background(Verdict& verdict, const Failure& failure) noexcept {
  const auto line = [&](auto&& fill) {
    if (verdict.evidence_count == kMaxEvidence) return;
    Text text{verdict.evidence[verdict.evidence_count++]};
    fill(text);
  };
  if (failure.ram_bytes != 0) {
    line([&](Text& text) {
      text.add("resident ").size(failure.rss_bytes).add(" of ").size(failure.ram_bytes);
      text.add(" RAM; swap ").size(failure.swap_bytes);
    });
  }
  if (failure.cgroup_limit_bytes != 0 && failure.cgroup_limit_bytes != kUnlimited) {
    line([&](Text& text) {
      text.add("cgroup working set ").size(failure.cgroup_used_bytes);
      text.add(" of ").size(failure.cgroup_limit_bytes);
    });
  }
}

bool was_refused(const session::View& view) noexcept {
  Failure failure{};
  for (std::uint64_t i = 1; i < view.count(session::TableId::failures); ++i)
    if (view.read(session::TableId::failures, i, failure) &&
        (failure.flags & session::kFailureProbe) == 0)
      return true;
  return false;
}

// " was killed by SIGKILL"
void add_death(Text& summary, std::string_view outcome) noexcept {
  constexpr struct {
    std::string_view number;
    std::string_view name;
  } kSignals[] = {{"1", "SIGHUP"},   {"2", "SIGINT"},   {"3", "SIGQUIT"},  {"4", "SIGILL"},
                  {"5", "SIGTRAP"},  {"6", "SIGABRT"},  {"7", "SIGBUS"},   {"8", "SIGFPE"},
                  {"9", "SIGKILL"},  {"10", "SIGUSR1"}, {"11", "SIGSEGV"}, {"12", "SIGUSR2"},
                  {"13", "SIGPIPE"}, {"14", "SIGALRM"}, {"15", "SIGTERM"}, {"24", "SIGXCPU"},
                  {"25", "SIGXFSZ"}, {"31", "SIGSYS"}};
  constexpr std::string_view kSignal = "signal ";
  constexpr std::string_view kExited = "exited ";
  if (outcome.starts_with(kSignal)) {
    summary.add(" was killed by ");
    for (const auto& signal : kSignals)
      if (outcome.substr(kSignal.size()) == signal.number) outcome = signal.name;
    summary.add(outcome);
  } else if (outcome.starts_with(kExited)) {
    summary.add(" ended with exit status ").add(outcome.substr(kExited.size()));
  } else if (outcome == name_of(OutcomeKind::recovered)) {
    summary.add(" ended with exit status 0");
  } else if (outcome == name_of(OutcomeKind::oom_killed)) {
    summary.add(" was killed by the kernel, which had no memory left");
  } else {
    summary.add(" is gone, nobody saw how");
  }
}

void explain_kill(Verdict& verdict, const session::View& view, std::string_view outcome) noexcept {
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const std::int64_t live = view.totals(static_cast<Space>(i)).live_bytes;
    if (live > 0) held = add(held, static_cast<std::uint64_t>(live));
  }
  const std::string_view program = base_name(view.string(view.header().executable));
  Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program);
  add_death(summary, outcome);
  summary.add("; it held ").size(held);
  if (!was_refused(view)) summary.add("; no refused request is on record");
}

void explain_trigger(Verdict& verdict, Trigger trigger, std::string_view reason) noexcept {
  Text summary{verdict.summary};
  if (trigger == Trigger::request) {
    verdict.code = VerdictCode::requested;
    summary.add("the program or its user asked for a bundle");
    reason.empty() ? summary.add("; nothing was refused") : summary.add(": ").add(reason);
  } else if (trigger == Trigger::simulated) {
    verdict.code = VerdictCode::simulated;
    summary.add("a refusal was simulated");
  } else {
    summary.add("no refused request is on record");
  }
}

void explain_refusal(Verdict& verdict, const session::View& view, const Failure& failure) noexcept {
  const std::uint64_t mapped = mapped_bytes(failure);
  const bool refused_by_us = (failure.flags & session::kFailureRefused) != 0;
  const Ceiling ceilings[] = {
      {VerdictCode::soft_limit, LimitKind::soft, "the soft limit", "live", failure.soft_limit_bytes,
       failure.live_bytes, failure.bytes,
       refused_by_us || exceeded(failure.soft_limit_bytes, failure.live_bytes, failure.bytes)},
      {VerdictCode::data_limit, LimitKind::rlimit_data, "the data limit (RLIMIT_DATA)", "data",
       failure.rlimit_data_bytes, failure.data_bytes, mapped,
       exceeded(failure.rlimit_data_bytes, failure.data_bytes, mapped)},
      {VerdictCode::address_space_limit, LimitKind::rlimit_as,
       "the address space limit (RLIMIT_AS)", "in use", failure.rlimit_as_bytes, failure.vm_bytes,
       mapped, exceeded(failure.rlimit_as_bytes, failure.vm_bytes, mapped),
       for_recorder(view, failure.rlimit_as_bytes)},
  };

  Text summary{verdict.summary};
  begin_summary(summary, view, failure);
  const Ceiling* hit = nullptr;
  for (const Ceiling& ceiling : ceilings) {
    if (ceiling.limit != 0 && ceiling.limit != kUnlimited) add_evidence(verdict, ceiling);
    if (hit == nullptr && ceiling.hit) hit = &ceiling;
  }
  if (hit != nullptr) {
    verdict.code = hit->code;
    verdict.limit = hit->kind;
    verdict.limit_bytes = hit->limit;
    verdict.limit_used_bytes = hit->used;
    const bool alone = failure.bytes > hit->limit;  // whoever holds the rest is not to blame
    summary.add(alone ? "that is more than " : "").add(hit->name).add(" of ");
    summary.size(hit->limit - hit->for_recorder);
    if (hit->for_recorder != 0)
      summary.add(" plus ").size(hit->for_recorder).add(" for the recorder");
    summary.add(alone ? " (" : " is reached (").add(hit->measure).add(' ').size(hit->used).add(')');
  } else if (failure.bytes >= kAddressSpaceBytes ||
             (failure.ram_bytes != 0 &&
              failure.bytes > add(failure.ram_bytes, failure.swap_bytes))) {
    explain_size(verdict, summary, failure);
  } else {
    explain_failure(verdict, summary, failure);
  }
  add_background(verdict, failure);
}

}  // namespace

Verdict verdict_of(const session::View& view, Trigger trigger, std::uint32_t index,
                   std::string_view reason, std::string_view outcome) noexcept {
  Verdict verdict;
  Failure failure{};
  const bool asked_for = trigger == Trigger::request || trigger == Trigger::simulated;
  if (!asked_for && index != 0 && view.read(session::TableId::failures, index, failure)) {
    explain_refusal(verdict, view, failure);
  } else if (trigger == Trigger::killed) {
    explain_kill(verdict, view, outcome);
  } else {
    explain_trigger(verdict, trigger, reason);
  }
  return verdict;
}

}  // namespace oomrec::bundle
