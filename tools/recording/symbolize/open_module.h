// One ELF file as libdwfl has it, and the files of debug information that belong to it.
#pragma once

#include <elfutils/libdwfl.h>

#include <string>

namespace oomrec::tools::recording {

struct OpenModule {
  explicit OpenModule(const std::string& path);
  ~OpenModule();
  OpenModule(const OpenModule&) = delete;
  OpenModule& operator=(const OpenModule&) = delete;

  Elf* elf() { return module != nullptr ? dwfl_module_getelf(module, &bias) : nullptr; }

  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;  // nullptr: there is no such file, or it is no ELF file
  std::string identity;           // of the file as it is now
  Dwarf_Addr bias = 0;            // of dwfl's addresses over the file's own
};

// See ModuleSymbols::sources().
std::string sources_of(const std::string& path);

}  // namespace oomrec::tools::recording
