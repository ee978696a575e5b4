// A refused request: the first that explains it wins. A limit in force that live + request exceeds,
// then a request larger than there is, then a lack that no limit explains.
#include "recorder/bundle/frames.h"
#include "recorder/bundle/text.h"
#include "recorder/bundle/verdict_parts.h"

namespace oomrec::bundle {
namespace {

using session::Failure;
using session::kUnlimited;

constexpr std::uint64_t kAddressSpaceBytes = std::uint64_t{1} << 47;
constexpr std::uint64_t kPageBytes = 4096;

// An allocator that is asked for a small block and has none left asks the system for a piece of its
// own size; a limit that leaves less than that is what refused the block.
constexpr std::uint64_t kAllocatorPieceBytes = std::uint64_t{1} << 20;

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
  add_line(verdict, [&](Text& line) {
    line.add(ceiling.measure).add(' ').size(ceiling.used).add(" + request ").size(ceiling.request);
    line.add(ceiling.hit ? " > " : " <= ").add(ceiling.name).add(' ').size(ceiling.limit);
  });
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

// What is known besides the ceilings.
void add_background(Verdict& verdict, const Failure& failure) noexcept {
  if (failure.ram_bytes != 0) {
    add_line(verdict, [&](Text& text) {
      text.add("resident ").size(failure.rss_bytes).add(" of ").size(failure.ram_bytes);
      text.add(" RAM; swap ").size(failure.swap_bytes);
    });
  }
  if (failure.cgroup_limit_bytes != 0 && failure.cgroup_limit_bytes != kUnlimited) {
    add_line(verdict, [&](Text& text) {
      text.add("cgroup working set ").size(failure.cgroup_used_bytes);
      text.add(" of ").size(failure.cgroup_limit_bytes);
    });
  }
}

}  // namespace

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

}  // namespace oomrec::bundle
