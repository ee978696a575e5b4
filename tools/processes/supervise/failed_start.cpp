#include "tools/processes/supervise/failed_start.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/text/own_code.h"
#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/processes/launch/facts.h"

namespace oomrec::tools::processes {
namespace {

bool is_native(const recording::Location& location) {
  return location.kind == recording::Location::Kind::native;
}

// The loader runs the constructors of libraries. The C library runs those of the program in
// call_init, before main; before glibc 2.34, by a function in the program, __libc_csu_init.
bool is_before_main(const std::vector<recording::LocationId>& stack,
                    const recording::Locations& locations) {
  const auto outermost = std::find_if(stack.rbegin(), stack.rend(), [&](recording::LocationId id) {
    return is_native(locations[id]);
  });
  if (outermost == stack.rend()) return false;
  if (text::base_name(locations.module_path(locations[*outermost])).starts_with("ld-linux"))
    return true;
  const auto in_libc = [&](recording::LocationId id) {
    return text::base_name(locations.module_path(locations[id])).starts_with("libc.");
  };
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const std::string& function = locations[stack[i]].function;
    if (function == "__libc_csu_init") return true;
    if (!in_libc(stack[i])) continue;
    if (function == "call_init") return true;
    // A stripped C library has no symbol call_init. One more function is between this one and main.
    if (i != 0 && function.starts_with("__libc_start_main") && !in_libc(stack[i - 1])) return true;
  }
  return false;
}

// Files that every Python imports before the program's first line, unless they are compiled into
// the interpreter.
bool is_startup_file(std::string_view python_file) {
  constexpr std::array<std::string_view, 11> kFiles = {
      "/codecs.py",        "/io.py",          "/abc.py",
      "/site.py",          "/os.py",          "/stat.py",
      "/posixpath.py",     "/genericpath.py", "/_collections_abc.py",
      "/_sitebuiltins.py", "/types.py"};
  if (python_file.starts_with("<frozen")) return true;
  return !text::is_programs_own(python_file) &&
         (python_file.find("/encodings/") != std::string_view::npos ||
          std::ranges::any_of(kFiles,
                              [&](std::string_view file) { return python_file.ends_with(file); }));
}

bool is_before_python(const recording::Recording& recording) {
  const session::View& view = recording.view();
  if (!text::base_name(recording.text(view.header().executable)).starts_with("python"))
    return false;
  for (const auto& code : session::entries<session::Code>(view, session::TableId::codes))
    if (!is_startup_file(view.string(code.file))) return false;
  return true;
}

}  // namespace

std::string failed_start_of(const bundles::Source& bundle, const Options& options) {
  const session::View& view = bundle.recording->view();
  session::Failure failure{};
  if (!view.read(session::TableId::failures, bundle.failure(), failure)) return {};
  const std::vector<recording::LocationId> stack = bundle.locations->of_stack(failure.node);
  const bool before_main = is_before_main(stack, *bundle.locations);
  if (!before_main && !is_before_python(*bundle.recording)) return {};

  const std::string program{text::base_name(bundle.recording->text(program_of(view.header())))};
  const char* beginning = before_main ? "main" : "its first line";
  const verdict::Verdict verdict = bundle.verdict();
  if (verdict.limit.kind == LimitKind::soft) {
    return fmt::format(
        "{} was refused memory before {}: a limit of {} is too low for it; raise --limit",
        printable(program), beginning, size_text(verdict.limit.bytes));
  }
  if (verdict.limit.kind != LimitKind::rlimit_as) return {};
  return fmt::format(
      "{} was refused memory before {}: {} of address space is too low for it; raise {}",
      printable(program), beginning,
      size_text(options.limit_as != 0 ? options.limit_as : verdict.limit.bytes),
      options.limit_as != 0 ? "--limit-as" : "the limit (ulimit -v)");
}

std::string failed_load_of(const std::string& path, const std::vector<std::string>& words,
                           const Settings& settings) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  if (!facts_of(path, words, settings).empty()) return {};
  return fmt::format(
      "{} never reached its main: its libraries do not fit into {} of address space; raise the "
      "limit "
      "(ulimit -v)",
      printable(text::base_name(path)), size_text(limit.rlim_cur));
}

}  // namespace oomrec::tools::processes
