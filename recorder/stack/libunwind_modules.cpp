// libunwind's dl_iterate_phdr: the modules that have appeared on stacks, without the loader's lock.
//
// That suffices: our own walk has already looked up the frame in question and all further in. Alone
// in its file: a test whose libunwind asks the loader has a function of its own by this name.
#include <link.h>

#include "recorder/stack/modules.h"

extern "C" int oomrec_dl_iterate_phdr(int (*visit)(dl_phdr_info*, std::size_t, void*), void* data) {
  using namespace oomrec::stack;
  const std::uint32_t count = module_slots();
  for (std::uint32_t slot = 1; slot < count; ++slot) {
    if (!is_module_loaded(slot)) continue;
    const LoadedModule& module = loaded_module(slot);
    dl_phdr_info info{};
    info.dlpi_addr = module.base;
    info.dlpi_name = "";
    info.dlpi_phdr = module.segments;
    info.dlpi_phnum = static_cast<Elf64_Half>(module.segment_count);
    info.dlpi_adds = count;
    if (const int result = visit(&info, sizeof info, data); result != 0) return result;
  }
  return 0;
}
