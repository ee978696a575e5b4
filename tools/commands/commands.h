// The subcommands of `oomrec`: one table, one file each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/base/arguments.h"
#include "tools/base/error.h"
#include "tools/recording/analysis/stacks.h"

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
int fleet_command(const Words& words);
int leaks_command(const Words& words);
int diff_command(const Words& words);
int fragmentation_command(const Words& words);
int ls_command(const Words& words);
int recover_command(const Words& words);
int watch_command(const Words& words);
int ended_command(const Words& words);
int dump_command(const Words& words);
int attach_command(const Words& words);
int info_command(const Words& words);
int lib_command(const Words& words);
int simulate_command(const Words& words);
int stress_command(const Words& words);
int completion_command(const Words& words);
int telemetry_command(const Words& words);
int complete_command(const Words& words);

// As in docs/commands/README.md.
enum class Group : std::uint8_t { record, read, other };
inline constexpr std::string_view kGroupTitles[] = {"to record", "to read",
                                                    "to share, to test, to type less"};

struct Command {
  Group group;
  std::string_view name;
  int (*function)(const Words&);
  std::string_view summary;
};

// Group by group: the order of `oomrec --help`.
inline constexpr Command kCommands[] = {
    {Group::record, "run", run_command, "run a program with the recorder"},
    {Group::record, "attach", attach_command, "record a process that is already running"},
    {Group::record, "info", info_command,
     "check this system, or whether a program can be recorded"},
    {Group::record, "lib", lib_command, "print the library's path, for LD_PRELOAD"},
    {Group::record, "watch", watch_command,
     "run as a service: bundles, metrics and alerts of recorded processes"},
    {Group::record, "track", track_command, "watch a process's memory: events, alerts, bundles"},
    {Group::record, "monitor", monitor_command, "sample the memory of the machine or a process"},
    {Group::record, "diagnose", diagnose_command,
     "check whether memory is at risk, and keep the evidence"},
    {Group::record, "recover", recover_command, "turn recordings of dead processes into bundles"},
    {Group::record, "ended", ended_command, "tell a process's recording why it is ended"},
    {Group::record, "dump", dump_command,
     "write a bundle of a running process, without disturbing it"},
    {Group::read, "show", show_command, "why memory ran out, and what was using it"},
    {Group::read, "stats", stats_command,
     "totals, peak, largest functions, sizes, allocator functions"},
    {Group::read, "tree", tree_command, "what holds the memory, by caller"},
    {Group::read, "timeline", timeline_command, "memory over time"},
    {Group::read, "top", top_command, "what holds a running process's memory, live"},
    {Group::read, "analyze", analyze_command,
     "find leaks, patterns and hidden memory in telemetry or a bundle"},
    {Group::read, "leaks", leaks_command, "call stacks whose memory keeps growing"},
    {Group::read, "diff", diff_command, "what grew between two recordings"},
    {Group::read, "fragmentation", fragmentation_command,
     "memory that allocators hold and the program does not use"},
    {Group::read, "report", report_command, "write a recording as one HTML file, for a browser"},
    {Group::read, "flamegraph", flamegraph_command, "write the report, opened at its flame graph"},
    {Group::read, "table", table_command, "write the report, opened at its table"},
    {Group::read, "ls", ls_command, "list the bundles in a directory"},
    {Group::read, "merge", merge_command, "merge the bundles of a job's ranks into one"},
    {Group::read, "fleet", fleet_command, "explain the deaths of many machines together"},
    {Group::other, "export", export_command, "write a recording in another tool's format"},
    {Group::other, "redact", redact_command, "copy a bundle to share, without private data"},
    {Group::other, "simulate", simulate_command,
     "reproduce a verdict in a small process, to see its bundle"},
    {Group::other, "stress", stress_command, "allocate in steps under a limit, with the recorder"},
    {Group::other, "completion", completion_command,
     "print a completion script for bash, zsh or fish"},
};

// For the Python package and the shells' scripts, which come with the command: neither listed nor a
// contract.
inline constexpr Command kUnlistedCommands[] = {
    {Group::other, "__telemetry", telemetry_command, "read a telemetry file"},
    {Group::other, "__complete", complete_command, "complete a command line"},
};

// Internal: the command starts itself, to fail or die in a process of its own.
inline constexpr const char* kChildFlag = "--child";

constexpr int code(Exit exit) { return static_cast<int>(exit); }

// Values of options that several commands have.

// The values of --space; "all" means the spaces that add up.
inline std::vector<std::string> space_choices() {
  std::vector<std::string> spaces{"all"};
  for (const std::string_view name : kSpaceNames) spaces.emplace_back(name);
  return spaces;
}

// --frames, for commands that show stacks. `unset`: what it is if it is not given.
inline void add_frames_choice(Arguments& arguments, std::string& frames, const std::string& unset) {
  arguments.choice("--frames", "KIND", frames,
                   {recording::kFramesNames.begin(), recording::kFramesNames.end()},
                   "which frames count in a stack that runs Python (" + unset + ")");
}

}  // namespace oomrec::tools::commands
