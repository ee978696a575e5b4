// Listing a directory.
#include "tools/base/directory.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>

#include "tests/unit/scratch_directory.h"

using namespace oomrec::tools;
using oomrec::tests::ScratchDirectory;

TEST_CASE("a directory is listed; a missing one and a file have no entries") {
  const ScratchDirectory directory;
  const std::filesystem::path path{directory.path()};
  std::ofstream{path / "file"} << "text";
  std::ofstream{path / ".hidden"} << "text";
  std::filesystem::create_directory(path / "folder");

  std::set<std::string> names;
  for (const std::filesystem::path& entry : entries_of(path)) names.insert(entry.filename());
  CHECK(names == std::set<std::string>{".hidden", "file", "folder"});
  CHECK(is_hidden(path / ".hidden"));
  CHECK_FALSE(is_hidden(path / "file"));

  CHECK(entries_of(path / "nothing").empty());
  CHECK(entries_of(path / "file").empty());
}
