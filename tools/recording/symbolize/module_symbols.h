// Names for addresses of one ELF file: functions with what was inlined into them, files and lines.
//
// The file is used only when its build-id is the one that was recorded: names from another build
// would be wrong without a sign of it. Debug information is taken from the file and from what its
// .gnu_debuglink and build-id name (debug_files.h); from the latter alone where the file is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace oomrec::tools::recording {

struct Location {
  std::string function;    // demangled; empty: unknown
  std::string file;        // empty: unknown
  std::uint32_t line = 0;  // 0: unknown
  bool inlined = false;    // into the location that follows
};

class ModuleSymbols {
 public:
  // nullptr when there is no such file, it is no ELF file, or it is another build, and no debug
  // information of the build that was recorded is to be had.
  static std::unique_ptr<ModuleSymbols> open(const std::string& path,
                                             std::span<const std::uint8_t> build_id);
  ~ModuleSymbols();
  ModuleSymbols(const ModuleSymbols&) = delete;
  ModuleSymbols& operator=(const ModuleSymbols&) = delete;

  // What is at link-time address `address`, innermost first; empty when nothing is known.
  std::vector<Location> find(std::uint64_t address);

  // The files that find() reads or would read, such that the text is another when one of them
  // comes, goes or changes. Cost: a look for separate debug information, without reading it.
  std::string sources() const;
  // False when debug information refers to a further file that is not here (DWARF 5, 7.3.6): what
  // find() answers now will be more once it is.
  bool is_whole() const;

 private:
  struct State;
  explicit ModuleSymbols(std::unique_ptr<State> state);
  static std::unique_ptr<ModuleSymbols> open_file(const std::string& path,
                                                  std::span<const std::uint8_t> build_id);
  std::unique_ptr<State> state_;
};

// The readable name of a C++ or C symbol.
std::string demangled(const char* symbol);

}  // namespace oomrec::tools::recording
