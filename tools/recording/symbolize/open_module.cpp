#include "tools/recording/symbolize/open_module.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/recording/symbolize/debug_files.h"
#include "tools/recording/symbolize/debuginfod.h"

namespace oomrec::tools::recording {
namespace {

// A text that changes when the file is rewritten or replaced.
std::string identity_of(int file) {
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return "none";
  return fmt::format("{}:{} {} {}.{:09}", status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

bool is_regular_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Restores standard input. In libdw 0.188 at least, dwfl_end() closes descriptor 0 if
// dwfl_standard_find_debuginfo() was called directly (sources_of): the module then has a debug file
// whose descriptor was never set.
class KeepStandardInput {
 public:
  KeepStandardInput() : kept_(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) {}
  ~KeepStandardInput() {
    if (kept_ < 0) return;
    dup2(kept_, STDIN_FILENO);
    close(kept_);
  }
  KeepStandardInput(const KeepStandardInput&) = delete;
  KeepStandardInput& operator=(const KeepStandardInput&) = delete;

 private:
  int kept_;
};

}  // namespace

OpenModule::OpenModule(const std::string& path) {
  // A recording may name any path: must not block on a FIFO, nor open a device, which may act on
  // it.
  if (!is_regular_file(path)) return;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return;
  identity = identity_of(file);
  dwfl = begin_dwfl();
  if (dwfl != nullptr) {
    dwfl_report_begin(dwfl);
    module = dwfl_report_elf(dwfl, path.c_str(), path.c_str(), file, 0, false);
    dwfl_report_end(dwfl, nullptr, nullptr);
  }
  if (module == nullptr) close(file);
  if (elf() == nullptr) module = nullptr;
}

OpenModule::~OpenModule() {
  if (dwfl != nullptr) dwfl_end(dwfl);
}

std::string sources_of(const std::string& path) {
  const KeepStandardInput keep;  // must outlive the probe
  // After this search a module does not load its debug information: hence a separate one.
  OpenModule probe{path};
  if (probe.module == nullptr) return {};
  GElf_Word crc = 0;
  const char* const link = dwelf_elf_gnu_debuglink(probe.elf(), &crc);
  char* found = nullptr;
  const ServerQuery query{path.substr(path.rfind('/') + 1)};
  const int file = find_debug_file_of(probe.module, path.c_str(), link, crc, &found);
  std::free(found);
  std::string sources = fmt::format("{}\n{}\n", probe.identity, identity_of(file));
  if (file >= 0) close(file);
  return sources;
}

}  // namespace oomrec::tools::recording
