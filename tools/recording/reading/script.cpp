#include "tools/recording/reading/script.h"

#include <algorithm>
#include <iterator>

#include "common/text/text.h"
#include "tools/base/text.h"

namespace oomrec::tools::recording {
namespace {

// The options that matter: those followed by code instead of a script's name, and those followed by
// a value. The word after any other option (-m, -jar, -f) may be the script.
struct Interpreter {
  std::string_view name;
  std::string_view before_code = {};
  std::string_view before_value = {};
};

constexpr Interpreter kInterpreters[] = {
    {"python", "-c", "-W -X"},
    {"pypy", "-c", "-W -X"},
    {"node", "-e --eval -p --print", "-r --require --import --loader -C --conditions"},
    {"nodejs", "-e --eval -p --print", "-r --require --import --loader -C --conditions"},
    {"java", "",
     "-cp -classpath --class-path -p --module-path --add-modules --add-opens --add-exports "
     "--add-reads"},
    {"ruby", "-e", "-I -r -C"},
    {"perl", "-e -E", "-I"},
    {"php", "-r", "-c -d -S -t -z --server --docroot"},
    {"bash", "-c", "-o -O --rcfile --init-file"},
    {"dash", "-c", "-o"},
    {"sh", "-c", "-o"},
};

// By the name without its version: python3.11, ruby2.7.
const Interpreter* interpreter_of(std::string_view program) {
  const std::string_view name = program.substr(0, program.find_first_of("0123456789.-"));
  const auto* const found = std::ranges::find(kInterpreters, name, &Interpreter::name);
  return found != std::end(kInterpreters) ? found : nullptr;
}

bool has_word(std::string_view words, std::string_view word) {
  const std::vector<std::string_view> all = split(words, ' ');
  return std::ranges::find(all, word) != all.end();
}

// Also the last of several letters in one word: bash -lc, perl -ne.
bool is_before_code(const Interpreter& interpreter, const std::string& word) {
  const bool is_long = word.starts_with("--");
  return has_word(interpreter.before_code, is_long ? word : std::string{'-', word.back()});
}

}  // namespace

bool is_script_interpreter(std::string_view program) { return interpreter_of(program) != nullptr; }

std::string script_in(std::string_view program, const std::vector<std::string>& arguments) {
  const Interpreter* const interpreter = interpreter_of(program);
  if (interpreter == nullptr) return {};
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with('-')) return std::string{text::base_name(word)};
    // "-": the program comes from stdin.
    if (word == "-" || is_before_code(*interpreter, word)) return {};
    if (has_word(interpreter->before_value, word)) ++i;
  }
  return {};
}

std::string script_of(const Recording& recording) {
  const std::string executable = recording.text(recording.header().executable);
  return script_in(text::base_name(executable), recording.arguments());
}

}  // namespace oomrec::tools::recording
