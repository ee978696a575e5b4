// `oomrec info`: whether a program can be recorded, or a process is; and which limits and
// directories are in force.
#include <unistd.h>

#include <iterator>

#include "tools/base/arguments.h"
#include "tools/commands/commands.h"
#include "tools/processes/launch/options.h"
#include "tools/processes/launch/python.h"
#include "tools/recording/live/processes.h"
#include "tools/views/info/process_page.h"
#include "tools/views/info/setup.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kInfoExamples =
    "  oomrec info                      system, devices, Python, limits, hooks, directories\n"
    "  oomrec info --detailed --device 0\n"
    "  oomrec info -- python train.py   would it be recorded? (stopped before its main)\n"
    "  oomrec info --json -- ./server\n"
    "  oomrec info 4711                 a process: is it recorded, and what of it is not "
    "observed?\n"
    "\n"
    "Exit code 1: the program would not be recorded, or the process is not.\n";

int process_info(pid_t pid, bool json) {
  const views::ProcessCheck check = views::check_process(pid);
  if (json)
    print_json(views::process_json(check));
  else
    views::print_process(check, Terminal{STDOUT_FILENO});
  return code(check.recorded ? Exit::shown : Exit::nothing_found);
}

}  // namespace

int info_command(const Words& words) {
  Arguments arguments{"info", "[OPTIONS] [PID | -- PROGRAM [ARGUMENTS]]",
                      "Checks whether a program would be recorded, and what of it, by starting it "
                      "and stopping it before its main. Without a program: shows the system, its "
                      "devices, Python, what the recorder can hook, limits and directories. Of a "
                      "process: says whether it is recorded and, after `oomrec attach`, which "
                      "modules' calls are not observed.",
                      kInfoExamples};
  bool json = false;
  bool detailed = false;
  std::string device;
  Words program;
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  arguments.flag("--detailed", detailed, "also show swap, libraries, UUIDs and Python packages");
  arguments.option("--device", "DEVICE", device, "show only this device: 0, cuda:0", {"0"});
  arguments.rest("PROGRAM", program, "the program and its arguments, as for `oomrec run`",
                 {std::begin(processes::kPythonOptions), std::end(processes::kPythonOptions)});
  if (!arguments.parse(words)) return code(Exit::shown);

  if (program.size() == 1 && access(program[0].c_str(), F_OK) != 0)
    if (const auto pid = recording::parse_pid(program[0])) return process_info(*pid, json);
  processes::report_unknown_variables();
  const views::Detail detail = detailed ? views::Detail::all : views::Detail::usual;
  // Throws for an invalid variable or device before anything is printed.
  const views::Setup setup =
      program.empty() ? views::setup_of_machine(device, json ? views::Detail::all : detail)
                      : views::setup_for_program(program);
  if (json) {
    print_json(views::setup_json(setup));
  } else {
    views::print_setup(setup, detail, Terminal{STDOUT_FILENO});
  }
  return code(!setup.program || setup.program->recorded() ? Exit::shown : Exit::nothing_found);
}

}  // namespace oomrec::tools::commands
