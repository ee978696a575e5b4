// `oomrec show`: why a bundle was written, what was asked for, who holds the rest, what came next.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/bundles/store/snapshot_source.h"
#include "tools/bundles/store/verdict_json.h"
#include "tools/commands/commands.h"
#include "tools/findings/advice/advice.h"
#include "tools/print/crash.h"
#include "tools/print/devices.h"
#include "tools/print/exception.h"
#include "tools/print/holders.h"
#include "tools/print/notes.h"
#include "tools/print/objects.h"
#include "tools/print/other_processes.h"
#include "tools/print/process.h"
#include "tools/print/ranks.h"
#include "tools/print/spaces.h"
#include "tools/processes/gpus/gpu_processes.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec show                                      the newest bundle\n"
    "  oomrec show oom_dumps/oom_cpu_20261121_101530_001\n"
    "  oomrec show oom_dumps                            ranks of a job, whose bundles are there\n"
    "  oomrec show --full --top 3                       every frame of the three largest holders\n"
    "  oomrec show --json | jq .verdict\n";

struct ShowOptions : bundles::ReadOptions {
  unsigned top = 0;  // 0: those that matter
  bool full = false;
};

namespace fs = std::filesystem;

constexpr unsigned kMostOnDevice = 3;
constexpr std::size_t kMostInJson = 100;

std::vector<recording::StackFigures> holders_of(const bundles::Source& source,
                                                recording::Stacks& stacks) {
  return recording::merged(source.recording->holders(), stacks, recording::At::end);
}

print::HolderGroup group_on(const bundles::Source& source, const recording::DeviceFigures& device,
                            recording::Stacks& stacks) {
  return {{},
          recording::merged(recording::holders_on(*source.recording, device.entry), stacks,
                            recording::At::end)};
}

class Page {
 public:
  Page(bundles::Source& source, const ShowOptions& options) : source_(source), options_(options) {}

  void print() {
    const verdict::Verdict verdict = source_.verdict();
    print_verdict(verdict);
    print_facts();
    print_ranks();
    print_request();
    print_exception();
    print_crash();
    print_limit(verdict);
    print_spaces();
    print_devices();
    const bool has_holders = print_holders();
    print_objects();
    print_snapshot();
    print_advice();
    print_company(verdict);
    heading("what happened next");
    fmt::print("  {}\n", print::outcome_sentence(source_.outcome()));
    std::vector<std::string> notes = print::notes_of(source_);
    if (has_holders) notes.emplace_back(print::kSharesNote);
    print::print_notes(notes, terminal_);
  }

 private:
  void heading(std::string_view text) const {
    fmt::print("\n{}\n", terminal_.paint(Colour::bold, text));
  }

  void print_verdict(const verdict::Verdict& verdict) const {
    fmt::print("{}\n", terminal_.paint(Colour::red, name_of(verdict.code)));
    fmt::print("  {}\n",
               terminal_.paint(Colour::bold, wrap(printable(verdict.summary), kColumns, 2)));
    for (unsigned i = 0; i < std::min(verdict.evidence_count, verdict::kMaxEvidence); ++i) {
      fmt::print("  - {}\n", wrap(printable(verdict.evidence[i]), kColumns, 4));
    }
  }

  void print_facts() const {
    fmt::print("\n");
    for (const auto& [name, value] : print::process_facts(source_)) {
      fmt::print("{:<9} {}\n", name, clip(printable(value), kColumns - 10));
    }
  }

  void print_ranks() const {
    if (!source_.is_job()) return;
    heading("ranks");
    fmt::print("{}", print::ranks_text(source_.ranks, terminal_, options_.full));
  }

  recording::StackStyle style(std::size_t indent) const {
    return {terminal_, indent, options_.full, source_.lines.get()};
  }

  void print_stack(const std::vector<recording::PlaceId>& stack, std::size_t indent) const {
    fmt::print("{}", recording::stack_text(stack, *source_.places, style(indent)));
  }

  void print_request() {
    const bundles::Refused refused{source_};
    heading("request");
    if (!refused.there) {
      fmt::print("  none was refused\n");
      return;
    }
    const session::Failure& failure = refused.failure;
    const std::string_view thread{refused.thread.name};
    fmt::print("  {} ({} bytes) from {} {}{}{}\n", size_text(failure.bytes),
               count_text(failure.bytes), name_of(static_cast<Api>(failure.api)),
               where_text(failure), refused.error().empty() ? "" : ": " + refused.error(),
               source_.repeats() == 0
                   ? ""
                   : fmt::format(", {}", plural(source_.repeats(), "repeat", "repeats")));
    if (refused.thread.tid != 0) {
      fmt::print("  in thread {} \"{}\"\n", refused.thread.tid, printable(thread));
    }
    print_stack(source_.places->of_stack(failure.node), 4);
  }

  void print_exception() const {
    const std::string lines = print::exception_text(source_, options_.full, terminal_);
    if (lines.empty()) return;
    heading("what the program said of it");
    fmt::print("{}", lines);
  }

  std::string where_text(const session::Failure& failure) const {
    const std::string label = recording::device_label(*source_.recording, failure.device.device);
    return label.empty() ? fmt::format("in {}", name_of(static_cast<Space>(failure.space)))
                         : fmt::format("on {}", label);
  }

  void print_crash() const {
    const std::string crash = print::crash_text(source_, style(4));
    if (crash.empty()) return;
    heading("crash");
    fmt::print("{}", crash);
  }

  void print_limit(const verdict::Verdict& verdict) const {
    heading("limit");
    if (verdict.limit == LimitKind::none) {
      fmt::print("  none that explains it\n");
      return;
    }
    const auto figure = counts_things(verdict.limit) ? count_text : size_text;
    fmt::print("  {}: {} of {} in use\n", name_of(verdict.limit), figure(verdict.limit_used_bytes),
               figure(verdict.limit_bytes));
  }

  void print_spaces() const {
    heading("memory");
    fmt::print("{}", print::spaces_text(*source_.recording));
  }

  // False: there are none.
  bool print_holders() {
    recording::Stacks stacks{*source_.recording, *source_.places};
    bool has_holders = false;
    for (const print::HolderGroup& group : print::grouped(holders_of(source_, stacks))) {
      has_holders = has_holders || !group.rows.empty();
      heading(group.rows.empty() ? "holders: none" : group.heading);
      print_group(group, stacks, options_.top);
    }
    return has_holders;
  }

  void print_group(const print::HolderGroup& group, const recording::Stacks& stacks,
                   unsigned top) const {
    fmt::print("{}", print::holders_text(group, stacks, *source_.places, {style(6), top}));
  }

  void print_objects() const {
    const std::string lines =
        print::python_objects_text(print::python_objects_json(source_), terminal_);
    if (lines.empty()) return;
    heading("largest arrays and tensors");
    fmt::print("{}", lines);
  }

  // What torch's allocator had given out when it could give no more.
  void print_snapshot() const {
    const fs::path file = bundles::snapshot_in(source_.bundle);
    if (file.empty()) return;
    heading("PyTorch's own snapshot");
    const std::string name = printable(file.string());
    try {
      const bundles::Source snapshot = bundles::open_snapshot(file);
      recording::Stacks stacks{*snapshot.recording, *snapshot.places};
      for (const print::HolderGroup& group : print::grouped(holders_of(snapshot, stacks))) {
        const recording::StackStyle lines{terminal_, 6, options_.full, nullptr};
        fmt::print("{}",
                   print::holders_text(group, stacks, *snapshot.places, {lines, kMostOnDevice}));
      }
      fmt::print("  all of it: oomrec show {0}\n             oomrec report {0}\n", name);
    } catch (const Error& error) {
      fmt::print("  {}\n", wrap(printable(error.what()), kColumns, 2));
    }
  }

  // Where there are several, who holds most on each.
  void print_devices() const {
    const std::vector<recording::DeviceFigures> devices =
        recording::devices_of(*source_.recording, source_.failure());
    if (devices.empty()) return;
    heading("devices");
    for (const recording::DeviceFigures& device : devices)
      fmt::print("{}{}", print::device_text(device),
                 processes::others_on_text(processes::others_on(source_, device.uuid)));
    if (devices.size() < 2) return;
    recording::Stacks stacks{*source_.recording, *source_.places};
    for (const recording::DeviceFigures& device : devices) {
      const print::HolderGroup group = group_on(source_, device, stacks);
      if (group.rows.empty()) continue;
      heading(fmt::format("holders on {}", device.label));
      print_group(group, stacks, options_.top != 0 ? options_.top : kMostOnDevice);
    }
  }

  void print_advice() const {
    const std::vector<findings::Hint> advice = findings::advice_for(source_);
    if (advice.empty()) return;
    heading("what to try");
    for (const findings::Hint& hint : advice)
      fmt::print("  - {}\n", wrap(printable(hint.text), kColumns, 4));
  }

  void print_company(const verdict::Verdict& verdict) const {
    const Json company = print::company_of(source_);
    const auto section = [this](std::string_view name, const std::string& lines) {
      if (lines.empty()) return;
      heading(name);
      fmt::print("{}", lines);
    };
    section("processes of its group, when the bundle was written",
            print::group_text(company, options_.full));
    section("largest others in its cgroup", print::others_text(company, source_, verdict));
  }

  bundles::Source& source_;
  const ShowOptions& options_;
  const Terminal terminal_{STDOUT_FILENO};
};

Json all_holders_json(const bundles::Source& source, std::size_t top) {
  recording::Stacks stacks{*source.recording, *source.places};
  Json holders = Json::array();
  for (const print::HolderGroup& group : print::grouped(holders_of(source, stacks))) {
    for (Json& row : print::holders_json(group, stacks, *source.places, top))
      holders.push_back(std::move(row));
  }
  return holders;
}

Json devices_json(const bundles::Source& source, std::size_t top) {
  recording::Stacks stacks{*source.recording, *source.places};
  Json rows = Json::array();
  for (const recording::DeviceFigures& device :
       recording::devices_of(*source.recording, source.failure())) {
    rows.push_back(print::device_json(device));
    rows.back()["processes"] = processes::others_on(source, device.uuid);
    rows.back()["holders"] =
        print::holders_json(group_on(source, device, stacks), stacks, *source.places, top);
  }
  return rows;
}

Json advice_json(const bundles::Source& source) {
  Json list = Json::array();
  for (const findings::Hint& hint : findings::advice_for(source))
    list.push_back({{"rule", hint.rule}, {"text", printable(hint.text)}});
  return list;
}

Json page_json(const bundles::Source& source, std::size_t top) {
  const verdict::Verdict verdict = source.verdict();
  const Json company = print::company_of(source);
  return {
      {"schema_version", 1},
      {"bundle", text_or_null(source.bundle.string())},
      {"created_at_utc", text_or_null(print::created_at(source))},
      {"trigger", name_of(source.trigger())},
      {"outcome", source.outcome()},
      {"verdict", bundles::verdict_json(verdict)},
      {"context", text_or_null(printable(source.reason()))},
      {"process", print::process_json(source)},
      {"request", bundles::request_json(source)},
      {"exception", print::exception_json(source)},
      {"custom_metadata", print::custom_metadata_json(source)},
      {"crash", print::crash_json(source)},
      {"child", bundles::child_json(source)},
      {"limit", bundles::limit_json(verdict)},
      {"spaces", print::spaces_json(*source.recording)},
      {"holders", all_holders_json(source, top)},
      {"devices", devices_json(source, top)},
      {"objects", print::python_objects_json(source)},
      {"torch_snapshot", text_or_null(bundles::snapshot_in(source.bundle).string())},
      {"advice", advice_json(source)},
      {"processes", company["processes"]},
      {"others", company["others"]},
      {"job", source.ranks},
      {"recording", print::recording_json(source)},
      {"notes", print::notes_of(source)},  // last: of the modules that a stack above is in
  };
}

}  // namespace

int show_command(const Words& words) {
  Arguments arguments{
      "show", "[OPTIONS] [BUNDLE]",
      "Tells why a bundle was written: verdict, request, limit, who holds the memory "
      "by full native and Python stack, and what happened next.",
      kExamples};
  ShowOptions options;
  options.add_to(arguments);
  arguments.option("--top", "N", options.top,
                   "the N largest holders (those with 1 % or more, 10 at most; 100 with --json)");
  arguments.flag("--full", options.full, "every frame (the 14 lines that tell most)");
  if (!arguments.parse(words)) return code(Exit::shown);

  bundles::Source source = options.open();
  if (options.json) {
    print_json(page_json(source, options.top != 0 ? options.top : kMostInJson));
  } else {
    Page{source, options}.print();
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
