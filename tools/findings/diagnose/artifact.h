// The output directory of `oomrec diagnose`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::findings {

class DiagnoseArtifact {
 public:
  // Creates the directory `output`. If that exists, creates NAME-YYYYmmdd-HHMMSS in it; if it is
  // empty, in the working directory. Appends -N if that name is taken. Throws Error.
  DiagnoseArtifact(const std::string& output, const std::string& name);

  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, const Json& value);

  // Writes manifest.json, which lists the other files: call it last.
  void finish(const std::vector<std::string>& command_line, int exit_code, bool risk,
              const std::string& error);

 private:
  std::filesystem::path path_;
  std::vector<std::string> files_;
};

}  // namespace oomrec::tools::findings
