#include "tools/recording/symbolize/debug_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "tools/base/text.h"
#include "tools/recording/symbolize/debuginfod.h"

namespace oomrec::tools::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSystemDirectory = "/usr/lib/debug";

struct InForce {
  bool ask_servers = false;
  std::vector<std::string> directories{std::string{kSystemDirectory}};  // absolute
};

InForce& in_force() {
  static InForce settings;
  return settings;
}

// What libdwfl calls for a module that has no debug information of its own, and for the file that
// several files of debug information share (.gnu_debugaltlink).
int find_debug_file(Dwfl_Module* module, void** own, const char* name, Dwarf_Addr base,
                    const char* file, const char* link, GElf_Word crc, char** found) {
  const std::string_view subject = link != nullptr ? link : name != nullptr ? name : "";
  const ServerQuestion question{subject.substr(subject.rfind('/') + 1)};
  return dwfl_standard_find_debuginfo(module, own, name, base, file, link, crc, found);
}

// ".build-id/12/3456….debug"
std::string name_by_build_id(std::span<const std::uint8_t> build_id) {
  std::string name = ".build-id/";
  for (std::size_t i = 0; i < build_id.size(); ++i)
    name += fmt::format("{:02x}{}", build_id[i], i == 0 ? "/" : "");
  return name + ".debug";
}

}  // namespace

void use_debug_files(const DebugFiles& wanted) {
  InForce& now = in_force();
  now = {};
  for (const std::string_view directory : split(wanted.directories, ':')) {
    if (directory.empty()) continue;
    now.directories.insert(now.directories.end() - 1,
                           fs::absolute(directory).lexically_normal().string());
  }
  now.ask_servers = wanted.ask_servers;
  if (now.ask_servers) need_debuginfod();
}

Dwfl* begin_dwfl() {
  // "" is the module's own directory, .debug one in it.
  static std::string directories =
      fmt::format(":.debug:{}", fmt::join(in_force().directories, ":"));
  static char* path = directories.data();
  static const Dwfl_Callbacks callbacks = {
      .find_elf = dwfl_build_id_find_elf,
      .find_debuginfo = find_debug_file,
      .section_address = dwfl_offline_section_address,
      .debuginfo_path = &path,
  };
  if (!in_force().ask_servers) forget_servers();
  Dwfl* const dwfl = dwfl_begin(&callbacks);
  if (dwfl != nullptr && in_force().ask_servers) ServerQuestion::watch(dwfl);
  return dwfl;
}

std::string debug_file_of(std::span<const std::uint8_t> build_id) {
  if (build_id.size() < 2) return {};
  for (const std::string& directory : in_force().directories) {
    const fs::path file = fs::path{directory} / name_by_build_id(build_id);
    if (access(file.c_str(), R_OK) == 0) return file;
  }
  if (!in_force().ask_servers) return {};
  const std::unique_ptr<Dwfl, decltype(&dwfl_end)> dwfl{begin_dwfl(), &dwfl_end};
  if (dwfl == nullptr) return {};
  const ServerQuestion question{name_by_build_id(build_id)};
  return ask_servers(dwfl.get(), build_id);
}

}  // namespace oomrec::tools::recording
