// Opens an ELF file in libdwfl, and finds its debug files.
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
  Dwfl_Module* module = nullptr;  // nullptr: there is no such file, or it is not ELF
  std::string identity;           // changes when the file is rewritten or replaced
  Dwarf_Addr bias = 0;            // add it to an address of the file to get one of dwfl's
};

// See ModuleSymbols::sources().
std::string sources_of(const std::string& path);

}  // namespace oomrec::tools::recording
