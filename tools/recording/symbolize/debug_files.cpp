#include "tools/recording/symbolize/debug_files.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "tools/base/text.h"
#include "tools/recording/symbolize/debuginfod.h"

namespace oomrec::tools::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSystemDirectory = "/usr/lib/debug";

struct Settings {
  bool use_servers = false;
  std::vector<std::string> directories{std::string{kSystemDirectory}};  // absolute
};

Settings& settings() {
  static Settings current;
  return current;
}

// Whether libdwfl would open something that is not a file beside the module, whose owner chose the
// name of its debug file: it waits for the writer of a FIFO.
bool would_block(const fs::path& module, const char* link) {
  const fs::path name =
      link != nullptr ? fs::path{link} : fs::path{module.filename().string() + ".debug"};
  const fs::path directory = module.parent_path();
  for (const fs::path& file :
       {directory / name, directory / name.filename(), directory / ".debug" / name.filename()}) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) return true;
  }
  return false;
}

// ".build-id/12/3456….debug"
std::string name_by_build_id(std::span<const std::uint8_t> build_id) {
  std::string name = ".build-id/";
  for (std::size_t i = 0; i < build_id.size(); ++i)
    name += fmt::format("{:02x}{}", build_id[i], i == 0 ? "/" : "");
  return name + ".debug";
}

// Empty: none.
std::string debug_file_in_directories(std::span<const std::uint8_t> build_id) {
  if (build_id.size() < 2) return {};
  for (const std::string& directory : settings().directories) {
    const fs::path file = fs::path{directory} / name_by_build_id(build_id);
    if (access(file.c_str(), R_OK) == 0) return file;
  }
  return {};
}

// Where libdwfl looks for a debug file of this name: beside the module, and in each directory below
// the module's own, whole or without its first components. `directory`: with a slash at its end.
bool is_there_by_name(const std::string& directory, const std::string& name) {
  const auto exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; };
  if (exists(directory + name) || exists(directory + ".debug/" + name)) return true;
  for (const std::string& root : settings().directories)
    for (std::size_t from = 0; from != directory.npos; from = directory.find('/', from + 1))
      if (exists(root + directory.substr(from) + name)) return true;
  return false;
}

// False: libdwfl would find nothing, and loaded the client of the servers for that (0.188 does so
// even without any), with curl and thirty more libraries. That is a fifth of a command's time.
bool is_wanted(Dwfl_Module* module, const char* file, const char* link) {
  if (settings().use_servers) return true;
  const unsigned char* build_id = nullptr;
  GElf_Addr address = 0;
  const int bytes = dwfl_module_build_id(module, &build_id, &address);
  if (bytes > 0 && !debug_file_in_directories({build_id, static_cast<std::size_t>(bytes)}).empty())
    return true;
  const auto is_beside = [link](const std::string& path) {
    const std::size_t name = path.rfind('/') + 1;
    return is_there_by_name(path.substr(0, name),
                            link != nullptr ? link : path.substr(name) + ".debug");
  };
  if (is_beside(file)) return true;
  std::error_code error;
  const std::string resolved = fs::canonical(file, error);
  return !error && resolved != file && is_beside(resolved);
}

// As libdwfl's own search ends without a file: any errno but 0 would be an error, and hide the
// module's own symbols.
int not_found() {
  errno = 0;
  return -1;
}

// libdwfl calls it for a module without debug information in its file, and for the supplementary
// file that several debug files share (.gnu_debugaltlink).
int find_debug_file(Dwfl_Module* module, void** own, const char* name, Dwarf_Addr base,
                    const char* file, const char* link, GElf_Word crc, char** found) {
  if (file != nullptr && (would_block(file, link) || !is_wanted(module, file, link)))
    return not_found();
  const std::string_view subject = link != nullptr ? link : name != nullptr ? name : "";
  const ServerQuery query{subject.substr(subject.rfind('/') + 1)};
  return dwfl_standard_find_debuginfo(module, own, name, base, file, link, crc, found);
}

}  // namespace

int find_debug_file_of(Dwfl_Module* module, const char* file, const char* link, GElf_Word crc,
                       char** found) {
  if (would_block(file, link) || !is_wanted(module, file, link)) return not_found();
  return dwfl_standard_find_debuginfo(module, nullptr, nullptr, 0, file, link, crc, found);
}

void use_debug_files(const DebugFiles& files) {
  Settings& current = settings();
  current = {};
  for (const std::string_view directory : split(files.directories, ':')) {
    if (directory.empty()) continue;
    current.directories.insert(current.directories.end() - 1,
                               fs::absolute(directory).lexically_normal().string());
  }
  current.use_servers = files.use_servers;
  if (current.use_servers) require_debuginfod();
}

Dwfl* begin_dwfl() {
  // "" is the directory of the module, .debug is relative to it.
  static std::string directories =
      fmt::format(":.debug:{}", fmt::join(settings().directories, ":"));
  static char* path = directories.data();
  static const Dwfl_Callbacks callbacks = {
      .find_elf = dwfl_build_id_find_elf,
      .find_debuginfo = find_debug_file,
      .section_address = dwfl_offline_section_address,
      .debuginfo_path = &path,
  };
  if (!settings().use_servers) disable_servers();
  Dwfl* const dwfl = dwfl_begin(&callbacks);
  if (dwfl != nullptr && settings().use_servers) ServerQuery::show_progress_of(dwfl);
  return dwfl;
}

std::string debug_file_of(std::span<const std::uint8_t> build_id) {
  if (const std::string file = debug_file_in_directories(build_id); !file.empty()) return file;
  if (build_id.size() < 2 || !settings().use_servers) return {};
  const std::unique_ptr<Dwfl, decltype(&dwfl_end)> dwfl{begin_dwfl(), &dwfl_end};
  if (dwfl == nullptr) return {};
  const ServerQuery query{name_by_build_id(build_id)};
  return fetch_debug_file(dwfl.get(), build_id);
}

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
