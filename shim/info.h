// Facts for `oomrec info -- CMD`: what is hooked in this process.
//
// OOMREC_INFO=PATH: the constructor appends one JSON object a line to that file and ends the
// process with _exit(0), before any constructor or main of the program. A line is
//   {"fact": NAME, "active": true|false|null, "detail": TEXT}
// in this order: recorder, heap, allocator, operator_new, mappings, processes, threads, python,
// session, bundles, soft_limit, address_space_limit, data_limit, children, library.
#pragma once

#include <string_view>

#include "common/options/options.h"

namespace oomrec::shim {

struct HeapState {
  bool observed = false;
  std::string_view note;       // why not
  std::string_view allocator;  // file name of the library behind our malloc
  bool has_own_new = false;    // it has its own operator new
};

// `recorder_note`: why the recorder is off; empty if it is on.
void write_info(const char* path, const Options&, const HeapState&, bool recording,
                std::string_view recorder_note, const char* library_path) noexcept;

}  // namespace oomrec::shim
