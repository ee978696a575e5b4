#include "tools/views/draw/draw.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/processes/launch/python_interpreter.h"

extern "C" const char kDrawScript[], kDrawScriptEnd[];

namespace oomrec::tools::views {
namespace {

constexpr const char* kHowToGetThem = "pip install 'oomrec[plot]'";

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t begin = end == text.npos ? text.npos : text.rfind('\n', end);
  return printable(text.substr(begin == text.npos ? 0 : begin + 1, end - begin));
}

}  // namespace

Drawn draw(const Json& data, const std::string& directory) {
  const std::filesystem::path python = processes::find_python();
  if (python.empty()) {
    throw Error{Exit::bad_input, "nothing is drawn: there is no python3 here",
                fmt::format("Install Python 3.8 or newer, then: {}", kHowToGetThem)};
  }
  const std::string where = std::filesystem::absolute(directory).lexically_normal().string();
  const processes::PythonAnswer answer = processes::run_python(
      python, std::string{kDrawScript, kDrawScriptEnd}, {where}, json_text(data));
  const Json told = Json::parse(answer.output, nullptr, false);
  if (answer.exit_code != 0 || !told.is_object()) {
    throw Error{Exit::bad_input,
                fmt::format("{} could not draw into {}: {}", python.string(), printable(where),
                            answer.errors.empty() ? fmt::format("exit code {}", answer.exit_code)
                                                  : last_line(answer.errors)),
                "Name a directory of yours: --plot-dir DIR"};
  }
  Drawn drawn;
  for (const Json& file : member(told, "files"))
    drawn.files.push_back((std::filesystem::path{where} / file.get<std::string>()).string());
  if (const auto missing = text_of(told, "missing"))
    drawn.missing = fmt::format("{}; to have it: {}", *missing, kHowToGetThem);
  return drawn;
}

}  // namespace oomrec::tools::views
