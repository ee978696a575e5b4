// Finds separate debug files: beside the module, by build-id in the user's directories and in
// /usr/lib/debug, and on debuginfod servers if the user asks for them (debuginfod(8)).
//
// The settings are global, as they are in libdw. No server is queried without the user's option,
// whatever the environment says.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <span>
#include <string>

namespace oomrec::tools::recording {

struct DebugFiles {
  std::string directories;   // DIR[:DIR…], each laid out like /usr/lib/debug; empty: none
  bool use_servers = false;  // the servers of DEBUGINFOD_URLS
};

// Must be called before the first module is opened. Throws Error if servers are wanted and cannot
// be used.
void use_debug_files(const DebugFiles& files);

// A libdwfl session that finds debug files according to these settings.
Dwfl* begin_dwfl();

// A descriptor of the module's debug file; −1: none. The caller frees `found`, its path.
int find_debug_file_of(Dwfl_Module* module, const char* file, const char* link, GElf_Word crc,
                       char** found);

// The debug file of a module that is not installed here; empty: none.
std::string debug_file_of(std::span<const std::uint8_t> build_id);

// Opens an ELF file in libdwfl, and finds its debug files.
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
