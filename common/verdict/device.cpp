// The verdict on a failed request of GPU memory. The first explanation wins: the user's limit;
// fragmentation (memory that is free inside what the process has reserved, but not in one piece);
// a full device.
//
// Fragmentation inside the driver is invisible, and not guessed.
#include "common/text/device_text.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

using session::DeviceEvidence;
using session::Failure;
using session::kUnlimited;

// Which reserve had enough free memory for the request.
enum class Reserve : std::uint8_t { none, torch, pools };

Reserve reserve_with_free(const Failure& failure) noexcept {
  const DeviceEvidence& at = failure.device;
  if (failure.bytes == 0) return Reserve::none;
  const bool in_pieces =
      at.torch_largest_free_bytes != kUnlimited && at.torch_largest_free_bytes < failure.bytes;
  if (in_pieces && text::free_in_torch(at) >= failure.bytes) return Reserve::torch;
  return text::free_in_pools(at) >= failure.bytes ? Reserve::pools : Reserve::none;
}

void explain_limit(Verdict& verdict, text::Text& summary, const Failure& failure) noexcept {
  const DeviceEvidence& at = failure.device;
  verdict.code = VerdictCode::device_limit;
  verdict.limit = {LimitKind::device, at.limit_bytes, at.counted_bytes};
  const LimitWords words = limit_words(at.limit_bytes, at.counted_bytes, failure.bytes);
  summary.add(words.before).add("--limit-gpu of ").size(at.limit_bytes).add(words.after);
  summary.add("this process holds ").size(at.counted_bytes).add(')');
}

void explain_fragmentation(Verdict& verdict, text::Text& summary, const DeviceEvidence& at,
                           Reserve reserve) noexcept {
  verdict.code = VerdictCode::device_fragmentation;
  if (reserve == Reserve::torch) {
    summary.add("with ").size(text::free_in_torch(at)).add(" free in what PyTorch has reserved, ");
    summary.add("in pieces of at most ").size(at.torch_largest_free_bytes);
  } else {
    summary.add("with ").size(text::free_in_pools(at)).add(" free in what its memory pools hold");
  }
}

// Host memory or address space that the driver could not get.
void explain_other_lack(Verdict& verdict, text::Text& summary, const Failure& failure) noexcept {
  const auto space = static_cast<Space>(failure.space);
  verdict.code = VerdictCode::allocation_failed;
  summary.add("the driver had no ").add(is_on_host(space) ? "host memory" : "address space");
  summary.add(" for it (").add(text::error_name(space, failure.error)).add(')');
}

void explain_full_device(Verdict& verdict, text::Text& summary, const Failure& failure) noexcept {
  const DeviceEvidence& at = failure.device;
  verdict.code = VerdictCode::device_out_of_memory;
  if (static_cast<Space>(failure.space) == Space::torch) {
    summary.add("PyTorch gave up, but not because the driver refused; ");
  } else if (at.total_bytes != 0) {
    verdict.limit = {LimitKind::device, at.total_bytes, at.total_bytes - at.free_bytes};
  }
  if (verdict.limit.kind == LimitKind::device && failure.bytes > at.total_bytes) {
    summary.add("that is more than the device has; ");
  }
  text::add_state(summary, at);
}

void add_limit(Verdict& verdict, const Failure& failure) noexcept {
  const DeviceEvidence& at = failure.device;
  if (at.limit_bytes == 0) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("counted ").size(at.counted_bytes).add(" + request ").size(failure.bytes);
    line.add(add(at.counted_bytes, failure.bytes) > at.limit_bytes ? " > " : " <= ");
    line.add("--limit-gpu ").size(at.limit_bytes);
  });
}

void add_device_figures(Verdict& verdict, const DeviceEvidence& at) noexcept {
  if (at.total_bytes == 0) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("the driver reported ").number(at.polled_age_ms).add(" ms before: ");
    line.size(at.free_bytes).add(" free of ").size(at.total_bytes);
  });
  add_line(verdict, [&](text::Text& line) {
    line.add("this process holds ").size(at.counted_bytes);
    if (at.managed_bytes != 0) line.add(" and ").size(at.managed_bytes).add(" of managed memory");
    line.add("; used by others or by the runtime: ").size(text::used_by_others(at));
  });
}

void add_ratio(text::Text& line, std::uint64_t free_bytes, std::uint64_t reserved) noexcept {
  const unsigned percent = text::fragmentation_percent(free_bytes, reserved);
  line.add("; fragmentation_ratio ").number(percent / 100).add('.').number(percent % 100, 2);
  const std::string_view word = text::fragmentation_word(percent);
  if (!word.empty()) line.add(" (").add(word).add(')');
}

void add_torch(Verdict& verdict, const DeviceEvidence& at) noexcept {
  if (at.torch_reserved_bytes == 0) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("PyTorch has allocated ").size(at.torch_allocated_bytes).add(" of ");
    line.size(at.torch_reserved_bytes).add(" that it has reserved");
    add_ratio(line, text::free_in_torch(at), at.torch_reserved_bytes);
  });
  if (at.torch_largest_free_bytes == kUnlimited) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("the largest free piece there: ").size(at.torch_largest_free_bytes);
  });
}

void add_pools(Verdict& verdict, const DeviceEvidence& at) noexcept {
  if (at.pool_reserved_bytes == 0) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("memory pools hold ").size(at.pool_reserved_bytes).add(", of which ");
    line.size(at.pool_used_bytes).add(" are used");
    add_ratio(line, text::free_in_pools(at), at.pool_reserved_bytes);
  });
}

void add_help(Verdict& verdict, Reserve reserve) noexcept {
  if (reserve == Reserve::none) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("try: ");
    line.add(reserve == Reserve::torch
                 ? "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, smaller batches, "
                   "torch.cuda.empty_cache()"
                 : "smaller requests, a lower release threshold of the pool, trimming the pool");
  });
}

}  // namespace

void explain_device_failure(Verdict& verdict, const session::View& view,
                            const Failure& failure) noexcept {
  const DeviceEvidence& at = failure.device;
  const auto space = static_cast<Space>(failure.space);
  const bool elsewhere = is_on_host(space) || is_address_space(space);
  text::Text summary{verdict.summary};
  begin_failure(summary, view, failure);
  Reserve reserve = Reserve::none;
  if ((failure.flags & session::kFailureInjected) != 0) {
    explain_injection(verdict, summary, view, failure);
  } else if ((failure.flags & session::kFailureByRecorder) != 0) {
    explain_limit(verdict, summary, failure);
  } else if (elsewhere) {
    explain_other_lack(verdict, summary, failure);
  } else if (reserve = reserve_with_free(failure); reserve != Reserve::none) {
    explain_fragmentation(verdict, summary, at, reserve);
  } else {
    explain_full_device(verdict, summary, failure);
  }
  const std::string_view error = text::error_name(space, failure.error);
  if (!error.empty() && space != Space::torch)
    add_line(verdict, [&](text::Text& line) { line.add("the call's result was ").add(error); });
  if (at.device != 0) {
    add_limit(verdict, failure);
    add_device_figures(verdict, at);
    add_torch(verdict, at);
    add_pools(verdict, at);
    add_help(verdict, reserve);
  }
  if (is_on_host(space)) add_background(verdict, failure);
}

}  // namespace oomrec::verdict
