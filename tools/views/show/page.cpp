#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/holders.h"
#include "tools/bundles/store/source.h"
#include "tools/bundles/store/trigger.h"
#include "tools/findings/advice/advice.h"
#include "tools/processes/gpus/gpu_processes.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/sections/crash.h"
#include "tools/sections/devices.h"
#include "tools/sections/holders.h"
#include "tools/sections/notes.h"
#include "tools/sections/objects.h"
#include "tools/sections/other_processes.h"
#include "tools/sections/process.h"
#include "tools/sections/ranks.h"
#include "tools/sections/resident_memory.h"
#include "tools/views/show/show.h"

namespace oomrec::tools::views {
namespace {

constexpr unsigned kDefaultTopPerDevice = 3;

class Page {
 public:
  Page(const bundles::Source& source, const ShowStyle& style, const Terminal& terminal)
      : source_(source), style_(style), terminal_(terminal) {}

  void print() const {
    const verdict::Verdict verdict = source_.verdict();
    print_verdict(verdict);
    print_facts();
    print_ranks();
    print_request();
    section("what the program reported", sections::exception_text(source_, style_.full, terminal_));
    section("crash", sections::crash_text(source_, stack_style(4)));
    print_limit(verdict);
    print_spaces();
    print_devices();
    const bool has_holders = print_holders();
    section("largest arrays and tensors", sections::python_objects_text(source_, terminal_));
    print_snapshot();
    print_advice();
    print_related_processes(verdict);
    print_episode();
    std::vector<std::string> notes = sections::notes_of(source_);
    if (has_holders) notes.push_back(sections::shares_note(*source_.recording));
    sections::print_notes(notes, terminal_);
  }

 private:
  void heading(std::string_view text) const {
    fmt::print("\n{}\n", terminal_.paint(Colour::bold, text));
  }

  // Nothing if it has no lines.
  void section(std::string_view name, const std::string& lines) const {
    if (lines.empty()) return;
    heading(name);
    fmt::print("{}", lines);
  }

  void print_verdict(const verdict::Verdict& verdict) const {
    if (source_.is_live() && verdict.code == VerdictCode::requested) {
      const bool is_served = source_.recording->header().probes_total == 0;
      fmt::print(
          "running\n  {}\n",
          terminal_.paint(Colour::bold, is_served ? "no request was refused so far"
                                                  : "only optional requests have failed so far"));
      return;
    }
    fmt::print("{}{}\n", terminal_.paint(Colour::red, name_of(verdict.code)),
               verdict.has_certainty() ? fmt::format(" ({})", name_of(verdict.certainty)) : "");
    fmt::print("  {}\n",
               terminal_.paint(Colour::bold, wrap(printable(verdict.summary), kColumns, 2)));
    for (unsigned i = 0; i < verdict.evidence_count; ++i) {
      fmt::print("  - {}\n", wrap(printable(verdict.evidence[i]), kColumns, 4));
    }
  }

  void print_facts() const {
    fmt::print("\n");
    for (const auto& [name, value] : sections::process_facts(source_)) {
      fmt::print("{:<9} {}\n", name, clip(printable(value), kColumns - 10));
    }
    print_signature();
  }

  void print_signature() const {
    if (source_.is_live()) return;
    const bundles::Signature signature = bundles::signature_of(source_);
    if (signature.key.empty()) return;
    const std::string share = fmt::format(" ({})", percent_text(signature.top_share));
    fmt::print("{:<9} {}{}\n", "signature", clip(signature.title, kColumns - 10 - share.size()),
               share);
  }

  void print_ranks() const {
    if (!source_.is_job()) return;
    heading("ranks");
    fmt::print("{}", sections::ranks_text(source_.ranks, terminal_, style_.full));
  }

  recording::StackStyle stack_style(std::size_t indent) const {
    return {terminal_, indent, style_.full, source_.lines.get()};
  }

  void print_stack(const std::vector<recording::LocationId>& stack, std::size_t indent) const {
    fmt::print("{}", recording::stack_text(stack, *source_.locations, stack_style(indent)));
  }

  void print_request() const {
    const bundles::FailureDetails failed{source_};
    heading("request");
    if (!failed.exists) {
      const std::uint64_t probes = source_.recording->header().probes_total;
      fmt::print("  no request was refused{}\n",
                 probes == 0 ? ""
                             : fmt::format(", apart from {} with a fallback",
                                           plural(probes, "attempt", "attempts")));
      print_in_flight();
      return;
    }
    const session::Failure& failure = failed.failure;
    const std::string_view thread{failed.thread.name};
    fmt::print("  {} ({} bytes) from {} {}{}{}\n", size_text(failure.bytes),
               count_text(failure.bytes), name_of(static_cast<Api>(failure.api)),
               space_or_device_text(failure), failed.error().empty() ? "" : ": " + failed.error(),
               source_.repeats() == 0
                   ? ""
                   : fmt::format(", {}", plural(source_.repeats(), "repeat", "repeats")));
    print_aftershocks();
    if (failed.thread.tid != 0) {
      fmt::print("  in thread {} \"{}\"\n", failed.thread.tid, printable(thread));
    }
    print_stack(source_.locations->of_stack(failure.node), 4);
  }

  void print_in_flight() const {
    for (const recording::RequestInFlight& request : source_.recording->in_flight()) {
      fmt::print("  killed inside {} of {} ({} bytes)\n", name_of(request.api),
                 size_text(request.bytes), count_text(request.bytes));
      print_stack(source_.locations->of_stack(request.node), 4);
    }
  }

  void print_aftershocks() const {
    const facts::Aftershocks aftershocks = source_.aftershocks();
    if (aftershocks.count == 0) return;
    fmt::print("  {} refused afterwards, the last {} ms later\n",
               plural(aftershocks.count, "further request was", "further requests were"),
               count_text(aftershocks.last_after_ms));
  }

  std::string space_or_device_text(const session::Failure& failure) const {
    const std::string label = recording::device_label(*source_.recording, failure.device.device);
    return label.empty() ? fmt::format("in {}", name_of(static_cast<Space>(failure.space)))
                         : fmt::format("on {}", label);
  }

  void print_limit(const verdict::Verdict& verdict) const {
    heading("limit");
    if (verdict.limit.kind == LimitKind::none) {
      fmt::print("  no limit explains it\n");
      return;
    }
    const auto figure = is_count_limit(verdict.limit.kind) ? count_text : size_text;
    fmt::print("  {}: {} of {} in use\n", name_of(verdict.limit.kind),
               verdict.limit.used_bytes != 0 ? figure(verdict.limit.used_bytes) : "an unknown part",
               figure(verdict.limit.bytes));
    const session::LimitReserve reserve = session::limit_reserve_of(source_.recording->header());
    if (verdict.limit.kind == LimitKind::soft && reserve.used_bytes != 0)
      fmt::print("  after the refusal: {} of the reserve of {} were used\n",
                 size_text(reserve.used_bytes), size_text(reserve.bytes));
  }

  void print_spaces() const {
    heading("memory");
    fmt::print("{}", sections::spaces_text(*source_.recording));
    section("resident memory " + sections::time_of_look(source_),
            sections::resident_memory_text(source_));
  }

  // False if there are none.
  bool print_holders() const {
    recording::Stacks stacks{*source_.recording, *source_.locations,
                             recording::frames_of(*source_.recording)};
    bool has_holders = false;
    const recording::At at = sections::moment_of(source_, style_.at);
    const std::string_view when =
        at == recording::At::peak ? " (at the peak of each space; --at end: what was left)" : "";
    const std::vector<sections::HolderGroup> groups = sections::holder_groups(source_, stacks, at);
    for (const sections::HolderGroup& group : groups) {
      has_holders = has_holders || !group.rows.empty();
      heading(group.rows.empty() ? "holders: none" : fmt::format("{}{}", group.heading, when));
      if (&group == &groups.front()) print_unheld(group);
      print_group(group, stacks, style_.top);
    }
    return has_holders;
  }

  // What is larger than any holder comes first.
  void print_unheld(const sections::HolderGroup& group) const {
    const std::uint64_t largest = group.rows.empty() ? 0 : group.rows.front().bytes;
    for (const sections::UnheldPart& part : sections::unheld_parts(source_))
      if (part.bytes > largest)
        fmt::print("   -  {}\n",
                   wrap(fmt::format("{}  {}: {}", size_text(part.bytes), part.name, part.reason),
                        kColumns, 6));
  }

  void print_group(const sections::HolderGroup& group, recording::Stacks& stacks,
                   unsigned top) const {
    fmt::print("{}",
               sections::holders_text(group, stacks, *source_.locations, {stack_style(6), top}));
  }

  // PyTorch's own snapshot of its allocator, written when it ran out of memory.
  void print_snapshot() const {
    const std::optional<ForeignPath> file = bundles::snapshot_in(source_.bundle);
    if (!file) return;
    heading("PyTorch's own snapshot");
    const std::string name = printable(file->path().string());
    try {
      const bundles::Source snapshot = bundles::open_snapshot(*file);
      recording::Stacks stacks{*snapshot.recording, *snapshot.locations};
      for (const sections::HolderGroup& group :
           sections::holder_groups(snapshot, stacks, recording::At::end)) {
        const recording::StackStyle lines{terminal_, 6, style_.full, nullptr};
        fmt::print("{}", sections::holders_text(group, stacks, *snapshot.locations,
                                                {lines, kDefaultTopPerDevice}));
      }
      fmt::print("  in full: oomrec show {0}\n           oomrec report {0}\n", name);
    } catch (const Error& error) {
      fmt::print("  {}\n", wrap(printable(error.what()), kColumns, 2));
    }
  }

  // With several devices, also the largest holders on each.
  void print_devices() const {
    const std::vector<recording::DeviceFigures> devices =
        recording::devices_of(*source_.recording, source_.failure());
    if (devices.empty()) return;
    heading("devices");
    for (const recording::DeviceFigures& device : devices)
      fmt::print("{}{}", sections::device_text(device),
                 processes::others_on_text(processes::others_on(source_, device.uuid)));
    if (devices.size() < 2) return;
    recording::Stacks stacks{*source_.recording, *source_.locations,
                             recording::frames_of(*source_.recording)};
    for (const recording::DeviceFigures& device : devices) {
      const sections::HolderGroup group = sections::holders_on(source_, device, stacks);
      if (group.rows.empty()) continue;
      heading(fmt::format("holders on {}", device.label));
      print_group(group, stacks, style_.top != 0 ? style_.top : kDefaultTopPerDevice);
    }
  }

  void print_advice() const {
    const std::vector<findings::Hint> advice = findings::advice_for(source_);
    if (advice.empty()) return;
    heading("what to try");
    for (const findings::Hint& hint : advice)
      fmt::print("  - {}\n", wrap(printable(hint.text), kColumns, 4));
  }

  void print_related_processes(const verdict::Verdict& verdict) const {
    const bundles::Processes related = sections::related_processes(source_);
    section("memory of the cgroup at the kill", sections::cgroup_account_text(source_));
    section("processes of its group when the bundle was written",
            sections::tree_text(related, style_.full));
    section("largest other processes in its cgroup",
            sections::others_text(related, source_, verdict));
  }

  void print_episode() const {
    const sections::Episode episode = sections::episode_of(source_).value_or(sections::Episode{});
    heading("what happened next");
    fmt::print("  {}\n", sections::outcome_sentence(source_.outcome()));
    const std::string job = sections::job_outcome_text(episode);
    if (!job.empty()) fmt::print("  {}\n", job);
    section("other bundles of the same episode", sections::episode_text(episode, source_));
  }

  const bundles::Source& source_;
  const ShowStyle& style_;
  const Terminal& terminal_;
};

}  // namespace

void print_show_page(const bundles::Source& source, const ShowStyle& style,
                     const Terminal& terminal) {
  Page{source, style, terminal}.print();
}

}  // namespace oomrec::tools::views
