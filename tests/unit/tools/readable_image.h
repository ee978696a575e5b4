// A session made by hand, read as a command reads one from a file.
#pragma once

#include <fstream>
#include <memory>

#include "tests/unit/common/bundle/session_image.h"
#include "tests/unit/scratch_directory.h"
#include "tools/bundles/opening/open.h"

namespace oomrec::tests {

struct ReadableImage : session::TrainingSession {
  // Dead: of another boot.
  tools::bundles::Source source() const {
    const std::string path = directory_.path() + "/a.session";
    const session::Bytes bytes = view().bytes();
    std::ofstream{path, std::ios::binary}.write(
        reinterpret_cast<const char*>(bytes.at(0, bytes.total)),
        static_cast<std::streamsize>(bytes.total));
    return tools::bundles::open_source(path);
  }

  std::uint64_t python(std::string_view file_path, std::string_view function, std::uint32_t line) {
    const session::StringId file = string(file_path);
    const session::StringId name = string(function);
    std::uint32_t index = 0;
    auto& row = add<session::Code>(session::TableId::codes, &index);
    row.file = file;
    row.name = name;
    row.first_line = line;
    return session::python_frame(index, 0);
  }

  std::uint64_t group(std::string_view name) {
    return session::special_frame(session::SpecialFrame::thread_group, string(name));
  }
  std::uint64_t label(std::string_view name) {
    return session::special_frame(session::SpecialFrame::context, string(name));
  }

 private:
  ScratchDirectory directory_;
};

}  // namespace oomrec::tests
