#include "tools/views/draw/draw.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/base/error.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/processes/launch/python.h"

extern "C" const char kDrawScript[], kDrawScriptEnd[];

namespace oomrec::tools::views {
namespace {

constexpr const char* kInstallCommand = "pip install 'oomrec[plot]'";

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t begin = end == text.npos ? text.npos : text.rfind('\n', end);
  return printable(text.substr(begin == text.npos ? 0 : begin + 1, end - begin));
}

}  // namespace

DrawResult draw(const Json& data, const std::string& directory) {
  const std::filesystem::path python = processes::find_python();
  if (python.empty()) {
    throw Error{Exit::bad_input, "cannot draw: there is no python3",
                fmt::format("Install Python 3.8 or newer, then: {}", kInstallCommand)};
  }
  const std::filesystem::path target = std::filesystem::absolute(directory).lexically_normal();
  const ProgramResult run = processes::run_python(python, std::string{kDrawScript, kDrawScriptEnd},
                                                  {target.string()}, json_text(data));
  const Json result = parse_json(run.output);
  if (run.exit_code != 0 || !result.is_object()) {
    throw Error{
        Exit::bad_input,
        fmt::format("{} could not draw into {}: {}", python.string(), printable(target.string()),
                    run.errors.empty() ? fmt::format("exit code {}", run.exit_code)
                                       : last_line(run.errors)),
        "Give a directory that you can write to: --plot-dir DIR"};
  }
  DrawResult drawn;
  for (const Json& file : member(result, "files"))
    drawn.files.push_back((target / file.get<std::string>()).string());
  if (const auto missing = text_of(result, "missing"))
    drawn.missing = fmt::format("{}; to install it: {}", *missing, kInstallCommand);
  return drawn;
}

}  // namespace oomrec::tools::views
