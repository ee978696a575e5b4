// Runs other programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/descriptor.h"

namespace oomrec::tools {

// Whether a directory of PATH has this executable.
bool is_in_path(std::string_view program);

// A file in memory that contains `text`, read from its start. Unlike a pipe, it blocks nobody. −1
// on error, with errno.
Descriptor file_in_memory(std::string_view text);

// As of a shell: the program's own, or 128 + N for signal N.
int exit_code_of(int wait_status);

// The words as exec() takes them: valid as long as `words`.
std::vector<char*> arguments_of(const std::vector<std::string>& words);

struct ProgramResult {
  int exit_code = 127;         // exit_code_of(); 127: it could not be started
  std::string output, errors;  // at most 1 MiB each
};

// Its standard error: as ours, or in `errors`.
enum class ProgramErrors : bool { inherited, captured };

// Runs a program of PATH to its end, with `input` as its standard input.
ProgramResult run_program(const std::vector<std::string>& words, std::string_view input = {},
                          ProgramErrors errors = ProgramErrors::inherited);

}  // namespace oomrec::tools
