// Where debug information is looked for that lies in a file of its own: beside the module, by
// build-id below the directories that the user named and /usr/lib/debug, and on servers if the user
// said so (debuginfod(8)).
//
// What is in force counts for the whole command: libdw keeps it so, too. Without a word from the
// user no server is asked, whatever the environment says.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <span>
#include <string>

namespace oomrec::tools::recording {

struct DebugFiles {
  std::string directories;   // DIR[:DIR…], each laid out like /usr/lib/debug; empty: none
  bool ask_servers = false;  // those of DEBUGINFOD_URLS
};

// To be called before the first module is opened. Throws Error where no server can be asked.
void use_debug_files(const DebugFiles& wanted);

// A session of libdwfl that looks for debug information as was said.
Dwfl* begin_dwfl();

// The file of debug information of a module whose own file is not here; empty: none.
std::string debug_file_of(std::span<const std::uint8_t> build_id);

}  // namespace oomrec::tools::recording
