// Runs other programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oomrec::tools {

// Whether a directory of PATH has this executable.
bool is_in_path(std::string_view program);

// A file in memory that contains `text`, read from its start. Unlike a pipe, it blocks nobody. −1
// on error, with errno.
int file_in_memory(std::string_view text);

struct ProgramResult {
  int exit_code = 127;  // 128 + N after signal N; 127: it could not be started
  std::string output;   // its standard output, at most 1 MiB
};

// Runs a program of PATH to its end, with `input` as its standard input.
ProgramResult run_program(const std::vector<std::string>& words, std::string_view input = {});

}  // namespace oomrec::tools
