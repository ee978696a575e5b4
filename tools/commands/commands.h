// The subcommands of `oomrec`: one table, one file each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/error.h"

namespace oomrec::tools::commands {

using Words = std::vector<std::string>;  // what follows the subcommand

// Returns the exit code; `run` returns its program's.
int run_command(const Words& words);
int show_command(const Words& words);
int stats_command(const Words& words);
int tree_command(const Words& words);
int export_command(const Words& words);
int timeline_command(const Words& words);
int top_command(const Words& words);
int monitor_command(const Words& words);
int track_command(const Words& words);
int analyze_command(const Words& words);
int diagnose_command(const Words& words);
int report_command(const Words& words);
int flamegraph_command(const Words& words);
int table_command(const Words& words);
int merge_command(const Words& words);
int redact_command(const Words& words);
int leaks_command(const Words& words);
int diff_command(const Words& words);
int fragmentation_command(const Words& words);
int ls_command(const Words& words);
int recover_command(const Words& words);
int watch_command(const Words& words);
int dump_command(const Words& words);
int info_command(const Words& words);
int lib_command(const Words& words);
int simulate_command(const Words& words);
int stress_command(const Words& words);
int completion_command(const Words& words);

struct Command {
  std::string_view name;
  int (*function)(const Words&);
  std::string_view summary;
};

inline constexpr Command kCommands[] = {
    {"run", run_command, "start a program with the recorder"},
    {"show", show_command, "why a bundle was written, and who holds the memory"},
    {"stats", stats_command, "totals, peak, largest functions, sizes, allocator functions"},
    {"tree", tree_command, "who holds the memory, by caller"},
    {"leaks", leaks_command, "stacks whose memory grows and grows"},
    {"diff", diff_command, "what grew between two recordings"},
    {"fragmentation", fragmentation_command, "what allocators hold and nobody uses"},
    {"export", export_command, "a recording in the formats of other tools"},
    {"timeline", timeline_command, "memory over time"},
    {"top", top_command, "who holds the memory of a running process, live"},
    {"monitor", monitor_command, "samples of memory, of the machine or a process"},
    {"track", track_command, "watch a process's memory: events, alerts, bundles"},
    {"analyze", analyze_command, "leaks, patterns and gaps in telemetry or a bundle"},
    {"diagnose", diagnose_command, "is memory at risk here? a directory of evidence"},
    {"report", report_command, "a recording as one HTML file, for a browser"},
    {"flamegraph", flamegraph_command, "the report, opened at its flame graph"},
    {"table", table_command, "the report, opened at its table"},
    {"merge", merge_command, "the bundles of a job's ranks as one"},
    {"redact", redact_command, "a bundle without what tells of its machine and user"},
    {"ls", ls_command, "the bundles of a directory"},
    {"recover", recover_command, "make bundles of the recordings of dead processes"},
    {"watch", watch_command, "make bundles of what dies, as a service"},
    {"dump", dump_command, "write a bundle of a running process, unnoticed by it"},
    {"info", info_command, "this system; is a program recorded, and if not, why"},
    {"lib", lib_command, "the path for LD_PRELOAD"},
    {"simulate", simulate_command, "make a verdict happen in a small process, and show its bundle"},
    {"stress", stress_command, "allocate in steps under a cap, recorded"},
    {"completion", completion_command, "words for the shell to complete: bash, zsh, fish"},
};

constexpr int code(Exit exit) { return static_cast<int>(exit); }

}  // namespace oomrec::tools::commands
