// A temporary directory, and bundles written to it.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "common/bundle/bundle.h"
#include "tests/unit/scratch_directory.h"
#include "tools/base/json.h"
#include "tools/base/json_value.h"

namespace oomrec::bundle {

class Scratch {
  tests::ScratchDirectory directory_;

 public:
  Scratch() : dumps(directory_.path() + "/oom_dumps"), work(std::make_unique<Workspace>()) {}

  Result try_write(const session::View& view, const Cause& cause) {
    const std::string directory = dumps.string();
    return bundle::write(OutsideHooks::in_hook(), view, cause,
                         {directory.c_str(), max_dumps, max_total_bytes}, *work, error);
  }
  std::filesystem::path write(const session::View& view, const Cause& cause) {
    if (try_write(view, cause) != Result::written)
      throw std::runtime_error("not written, errno " + std::to_string(error));
    return work->path;
  }
  static tools::Json json(const std::filesystem::path& path) {
    tools::Json value = tools::parse_json(text(path));
    if (value.is_discarded()) throw std::runtime_error(path.string() + " is not JSON");
    return value;
  }
  static std::string text(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  std::size_t entries() const {
    if (!std::filesystem::exists(dumps)) return 0;
    const std::filesystem::directory_iterator begin{dumps};
    return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator{}));
  }

  std::filesystem::path dumps;
  std::uint64_t max_dumps = 5;
  std::uint64_t max_total_bytes = std::uint64_t{256} << 20;
  std::unique_ptr<Workspace> work;
  int error = 0;
};

}  // namespace oomrec::bundle
