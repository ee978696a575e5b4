// A near limit, or memory pressure: what the process measured before anything failed or was killed.
#include "common/limits/health.h"
#include "common/text/device_text.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

std::string_view name_of_limit(LimitKind kind) noexcept {
  switch (kind) {
    case LimitKind::soft:
      return "the soft limit";
    case LimitKind::rlimit_as:
      return "the address space limit (RLIMIT_AS)";
    default:
      return "the cgroup's limit";
  }
}

std::string_view measure_of(LimitKind kind) noexcept {
  switch (kind) {
    case LimitKind::soft:
      return "live ";
    case LimitKind::rlimit_as:
      return "in use ";
    default:
      return "working set ";
  }
}

constexpr std::uint32_t kOnePercent = 100;  // in hundredths, as Health has it

void add_percent(text::Text& text, std::uint32_t hundredths) noexcept {
  text.number(hundredths / 100).add('.').number(hundredths % 100, 2).add(" %");
}

void add_pressure(Verdict& verdict, const session::Health& health) noexcept {
  add_line(verdict, [&](text::Text& text) {
    text.add("resident ").size(health.rss_bytes.load(std::memory_order_relaxed));
    text.add(", swapped out ").size(health.swap_bytes.load(std::memory_order_relaxed));
    text.add("; ").number(health.major_faults.load(std::memory_order_relaxed));
    text.add(" major faults so far");
  });
  add_line(verdict, [&](text::Text& text) {
    text.add("memory pressure of the last 10 s: some ");
    add_percent(text, health.pressure_some.load(std::memory_order_relaxed));
    text.add(", full ");
    add_percent(text, health.pressure_full.load(std::memory_order_relaxed));
  });
}

// "python3.11 is at 96 % of --limit-gpu of 4.0 GiB on cuda:0 (NVIDIA H100) (it holds 3.8 GiB)"
void explain_near_device(Verdict& verdict, std::string_view program,
                         const session::Device& device) noexcept {
  const limit::LimitUsage to_limit = limit::usage_of_device_limit(device);
  const limit::LimitUsage to_full = limit::usage_of_device_memory(device);
  const bool by_limit = to_limit.percent() > to_full.percent();
  const limit::LimitUsage near = by_limit ? to_limit : to_full;
  const std::uint64_t held = device.counted_bytes();
  verdict.code = VerdictCode::near_limit;
  verdict.limit = {near.kind, near.limit_bytes, near.used_bytes};
  text::Text summary{verdict.summary};
  if (by_limit) {
    summary.add(program.empty() ? "the process" : program).add(" is at ").number(near.percent());
    summary.add(" % of --limit-gpu of ").size(near.limit_bytes).add(" on ");
    text::add_device(summary, device);
    summary.add(" (it holds ").size(held);
  } else {
    text::add_device(summary, device);
    summary.add(" is at ").number(near.percent()).add(" % of its ").size(near.limit_bytes);
    summary.add(" (in use ").size(near.used_bytes).add(", of which this process holds ").size(held);
  }
  summary.add("): the next request may be refused");
  add_line(verdict, [&](text::Text& text) {
    text.add(by_limit ? "counted " : "in use ").size(near.used_bytes);
    text.add(" of ").size(near.limit_bytes);
  });
}

}  // namespace

void add_untouched(Verdict& verdict, std::uint64_t bytes, bool has_soft_limit,
                   Checked checked) noexcept {
  if (bytes < kWorthALine) return;
  add_line(verdict, [&](text::Text& text) {
    text.add(checked == Checked::now ? "allocated but never touched: "
                                     : "allocated but not in memory at its last check: ");
    text.size(bytes);
    if (checked == Checked::earlier) text.add(", never touched or given back");
    text.add("; the kernel counts it as used only once it is touched");
    if (has_soft_limit) text.add("; the soft limit counts it already");
  });
}

void explain_near_limit(Verdict& verdict, const session::View& view,
                        const session::Health& health) noexcept {
  const session::Header& header = view.header();
  session::Device device;
  if (text::read_device(view, header.near_device, device))
    return explain_near_device(verdict, text::base_name(view.string(program_of(header))), device);
  const std::uint64_t soft_limit = header.soft_limit_bytes.load(std::memory_order_relaxed);
  const limit::LimitUsage refusal = limit::usage_of_failing_limit(health, soft_limit);
  limit::LimitUsage near = limit::usage_of_killing_limit(health);
  if (refusal.percent() > near.percent()) near = refusal;

  verdict.code = VerdictCode::near_limit;
  verdict.limit = {near.kind, near.limit_bytes, near.used_bytes};
  text::Text summary{verdict.summary};
  const std::string_view program = text::base_name(view.string(program_of(header)));
  summary.add(program.empty() ? "the process" : program).add(" is at ").number(near.percent());
  summary.add(" % of ").add(name_of_limit(near.kind)).add(" of ").size(near.limit_bytes);
  summary.add(" (").add(measure_of(near.kind)).size(near.used_bytes);
  summary.add(near.kind == LimitKind::cgroup
                  ? "): the kernel will kill it at the limit, unless there is swap"
                  : "): requests beyond the limit fail");

  add_line(verdict, [&](text::Text& text) {
    text.add(measure_of(near.kind)).size(near.used_bytes).add(" of ").size(near.limit_bytes);
  });
  add_untouched(verdict, near.untouched_bytes, soft_limit != 0, Checked::now);
  add_pressure(verdict, health);
}

void explain_pressure(Verdict& verdict, const session::View& view,
                      const session::Health& health) noexcept {
  verdict.code = VerdictCode::memory_pressure;
  text::Text summary{verdict.summary};
  const std::string_view program = text::base_name(view.string(program_of(view.header())));
  summary.add(program.empty() ? "the process" : program);
  summary.add(" is thrashing: it waits for memory instead of working");
  const std::uint32_t full = health.pressure_full.load(std::memory_order_relaxed);
  const std::uint32_t some = health.pressure_some.load(std::memory_order_relaxed);
  // The kernel notifies at the first long stall, when its average may still be close to 0.
  if (some >= kOnePercent) {
    const bool all = full >= kOnePercent;
    summary.add(all ? "; all tasks" : "; some tasks");
    summary.add(" of the machine or its cgroup did so for ");
    add_percent(summary, all ? full : some);
    summary.add(" of the last 10 s");
  }
  add_pressure(verdict, health);
  add_line(verdict, [&](text::Text& text) {
    text.add("available on the machine: ");
    text.size(health.available_bytes.load(std::memory_order_relaxed));
  });
}

}  // namespace oomrec::verdict
