// A reader of foreign bytes, as the fuzzer calls it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace oomrec::fuzz {

struct Target {
  const char* name;
  // True: the reader accepted the input; false: it refused it with an Error.
  bool (*read)(std::string_view input);
  // What inputs are made of, for mutations.
  std::span<const std::string_view> tokens;
};

std::span<const Target> targets();
const Target* target_of(std::string_view name);  // nullptr: there is none

// The targets' private directory, where those that need files write them. Removed by
// remove_files().
const std::string& directory();
void remove_files();

}  // namespace oomrec::fuzz
