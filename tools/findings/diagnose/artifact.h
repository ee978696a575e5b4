// The directory that `oomrec diagnose` leaves.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::findings {

class DiagnoseArtifact {
 public:
  // Makes the directory: `wanted`, or, where that is there already or empty, one in it (or in the
  // working directory) that is named NAME-YYYYmmdd-HHMMSS, with -N where that is taken. Throws
  // Error.
  DiagnoseArtifact(const std::string& wanted, const std::string& name);

  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, const Json& value);

  // manifest.json, last: it names the others.
  void finish(const std::vector<std::string>& command_line, int exit_code, bool risk,
              const std::string& error);

 private:
  std::filesystem::path path_;
  std::vector<std::string> files_;
};

}  // namespace oomrec::tools::findings
