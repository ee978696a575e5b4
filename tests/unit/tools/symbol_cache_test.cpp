// Names that are kept between commands: equal to those found anew, or not used at all.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>

#include "tests/unit/scratch_directory.h"
#include "tools/recording/symbolize/cached_symbols.h"

using namespace oomrec::tools;
using oomrec::tests::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

const recording::KnownSymbols::Answers kAnswers = {
    {0x10, {}},
    {0x20, {{"plain", "", 0, false}}},
    {0x2f, {{"inner()", "/src/a.h", 7, true}, {"outer()", "/src/a.cpp", 12, false}}},
};
constexpr std::string_view kKey = "a build";

bool same(const std::vector<recording::Location>& a, const std::vector<recording::Location>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const recording::Location& x, const recording::Location& y) {
                      return x.function == y.function && x.file == y.file && x.line == y.line &&
                             x.inlined == y.inlined;
                    });
}

bool knows_nothing(const recording::KnownSymbols& known) {
  return known.all().empty() && !known.find(0x20).has_value();
}

void use(const recording::KnownSymbols& known) {
  for (const auto& [address, locations] : known.all()) known.find(address);
  for (const std::uint64_t address : {0x0, 0x10, 0x20, 0x2f, 0x30}) known.find(address);
}

void set_used(const fs::path& file, std::chrono::hours ago) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - ago);
}

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(lstat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

// A copy of this program: a file with a build-id that a test may change.
class Program {
 public:
  Program() { fs::copy_file("/proc/self/exe", path()); }

  std::string path() const { return directory_.path() + "/program"; }
  std::shared_ptr<const recording::CacheDirectory> cache() const {
    return std::make_shared<const recording::CacheDirectory>(directory_.path() + "/cache");
  }
  fs::path only_kept_file() const {
    fs::directory_iterator files{directory_.path() + "/cache"};
    REQUIRE(files != fs::directory_iterator{});
    const fs::path file = files->path();
    CHECK(++files == fs::directory_iterator{});
    return file;
  }
  std::vector<recording::Location> main_found(std::string_view build_id = "b0") const {
    recording::CachedSymbols symbols{recording::ModuleSymbols::open(path(), {}), build_id, cache()};
    return symbols.find(kSomewhere);
  }

  // Makes what is kept tell something else than the file.
  void forge_kept() const {
    const fs::path file = only_kept_file();
    const std::string bytes = cache()->read(file.filename());
    const std::size_t text = bytes.find(kFunction);
    REQUIRE(text != std::string::npos);
    std::string forged = bytes;
    forged[text] = '!';
    const std::uint64_t hash = recording::KnownSymbols::hash_of(
        std::string_view{forged}.substr(recording::KnownSymbols::kChecked));
    std::memcpy(forged.data() + recording::KnownSymbols::kChecked - sizeof hash, &hash,
                sizeof hash);
    cache()->write(file.filename(), forged);
  }

  static std::uint64_t address_of_function();
  static inline const std::uint64_t kSomewhere = address_of_function();
  static constexpr std::string_view kFunction = "oomrec_kept_function";

 private:
  ScratchDirectory directory_;
};

}  // namespace

extern "C" __attribute__((noinline, visibility("default"))) void oomrec_kept_function() {
  asm volatile("" ::: "memory");
}

extern "C" const char __ehdr_start;  // of the linker: where address 0 of the file is

std::uint64_t Program::address_of_function() {
  return reinterpret_cast<std::uint64_t>(&oomrec_kept_function) -
         reinterpret_cast<std::uint64_t>(&__ehdr_start);
}

TEST_CASE("what was answered is known again, for its key only") {
  const std::string bytes = recording::KnownSymbols::bytes_of(kAnswers, kKey);
  const recording::KnownSymbols known{bytes, kKey};

  for (const auto& [address, locations] : kAnswers) {
    const auto found = known.find(address);
    REQUIRE(found.has_value());
    CHECK(same(*found, locations));
  }
  CHECK(known.all().size() == kAnswers.size());
  CHECK_FALSE(known.find(0x21).has_value());
  CHECK(knows_nothing(recording::KnownSymbols{bytes, "another build"}));
  CHECK(knows_nothing(recording::KnownSymbols{}));
}

TEST_CASE("cut or flipped bytes know nothing") {
  const std::string whole = recording::KnownSymbols::bytes_of(kAnswers, kKey);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK(knows_nothing(recording::KnownSymbols{whole.substr(0, length), kKey}));
  }
  CHECK(knows_nothing(recording::KnownSymbols{whole + '\0', kKey}));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    CHECK(knows_nothing(recording::KnownSymbols{flipped, kKey}));
  }
}

TEST_CASE("forged bytes with a right checksum are read within their bounds") {
  const std::string whole = recording::KnownSymbols::bytes_of(kAnswers, kKey);
  for (std::size_t byte = recording::KnownSymbols::kChecked; byte < whole.size(); ++byte) {
    for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
      // On the heap and of the very size, for the address sanitizer to see a byte too much.
      std::string forged = whole;
      forged[byte] = value;
      const std::uint64_t hash = recording::KnownSymbols::hash_of(
          std::string_view{forged}.substr(recording::KnownSymbols::kChecked));
      std::memcpy(forged.data() + recording::KnownSymbols::kChecked - sizeof hash, &hash,
                  sizeof hash);
      use(recording::KnownSymbols{forged, kKey});
    }
  }
}

TEST_CASE("an answer that is too long is not kept, the others are") {
  recording::KnownSymbols::Answers answers = kAnswers;
  answers[0x40] = {{std::string(1 << 17, 'x'), "", 0, false}};
  const recording::KnownSymbols known{recording::KnownSymbols::bytes_of(answers, kKey), kKey};
  CHECK_FALSE(known.find(0x40).has_value());
  CHECK(known.find(0x2f).has_value());
}

TEST_CASE("a cache is private, and its oldest files go first") {
  const ScratchDirectory scratch;
  const fs::path path = fs::path{scratch.path()} / "new" / "oomrec";
  const recording::CacheDirectory cache{path, 3000};

  cache.write("a", std::string(1000, 'a'));
  cache.write("b", std::string(1000, 'b'));
  CHECK(mode_of(path) == 0700);
  CHECK(mode_of(path / "a") == 0600);
  set_used(path / "a", std::chrono::hours{3});
  set_used(path / "b", std::chrono::hours{2});
  CHECK(cache.read("a") == std::string(1000, 'a'));  // and is young again
  cache.write("c", std::string(1500, 'c'));

  CHECK(cache.read("b").empty());
  CHECK(cache.read("a").size() == 1000);
  CHECK(cache.read("c").size() == 1500);
  cache.write("d", std::string(3001, 'd'));
  CHECK(cache.read("d").empty());
  CHECK(cache.read("c").size() == 1500);
}

TEST_CASE("a directory or a file that others may write is not used") {
  const ScratchDirectory scratch;
  const fs::path path = fs::path{scratch.path()} / "oomrec";
  const recording::CacheDirectory cache{path};
  cache.write("a", "whole");
  REQUIRE(cache.read("a") == "whole");

  SUBCASE("a group may write") { REQUIRE(chmod(path.c_str(), 0770) == 0); }
  SUBCASE("it is a link") {
    fs::rename(path, scratch.path() + "/elsewhere");
    fs::create_directory_symlink(scratch.path() + "/elsewhere", path);
  }
  SUBCASE("the file is a link") {
    fs::rename(path / "a", scratch.path() + "/elsewhere");
    fs::create_symlink(scratch.path() + "/elsewhere", path / "a");
    CHECK(cache.read("a").empty());
    return;
  }
  SUBCASE("the file is a FIFO") {
    fs::remove(path / "a");
    REQUIRE(mkfifo((path / "a").c_str(), 0600) == 0);
    CHECK(cache.read("a").empty());
    return;
  }
  CHECK(cache.read("a").empty());
  cache.write("b", "more");
  CHECK_FALSE(fs::exists(path / "b"));
}

TEST_CASE("the cache is where the user's variables say, if that is the user's") {
  const ScratchDirectory scratch;
  const auto writes_to = [&](const fs::path& directory) {
    const auto cache = recording::CacheDirectory::of_user();
    if (cache != nullptr) cache->write("a", "bytes");
    return cache != nullptr && fs::remove(directory / "a");
  };
  setenv("HOME", scratch.path().c_str(), 1);
  unsetenv("XDG_CACHE_HOME");
  CHECK(writes_to(scratch.path() + "/.cache/oomrec"));
  setenv("XDG_CACHE_HOME", "relative", 1);
  CHECK(writes_to(scratch.path() + "/.cache/oomrec"));
  fs::create_directory(scratch.path() + "/xdg");
  setenv("XDG_CACHE_HOME", (scratch.path() + "/xdg").c_str(), 1);
  CHECK(writes_to(scratch.path() + "/xdg/oomrec"));
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  CHECK(recording::CacheDirectory::of_user() == nullptr);
  setenv("HOME", "/nowhere", 1);
  CHECK(recording::CacheDirectory::of_user() == nullptr);
  // Another user's: root's for everybody else, and a stranger's for root.
  struct stat status {};
  const bool given = geteuid() != 0 || chown((scratch.path() + "/xdg").c_str(), 12345, 12345) == 0;
  setenv("HOME", geteuid() != 0 ? "/" : (scratch.path() + "/xdg").c_str(), 1);
  if (given && stat(std::getenv("HOME"), &status) == 0 && status.st_uid != geteuid())
    CHECK(recording::CacheDirectory::of_user() == nullptr);
}

TEST_CASE("a name is found once, kept, and not looked for again") {
  const Program program;
  const std::vector<recording::Location> found = program.main_found();
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].function == Program::kFunction);
  CHECK(same(program.main_found(), found));

  program.forge_kept();
  CHECK(program.main_found()[0].function.starts_with("!"));
}

TEST_CASE("what is kept of files that have changed since is not used") {
  const Program program;
  program.main_found();
  program.forge_kept();
  set_used(program.path(), std::chrono::hours{1});
  CHECK(program.main_found()[0].function == Program::kFunction);
}

TEST_CASE("what is kept of another build is not used, nor is anything kept without a build-id") {
  const Program program;
  CHECK(program.main_found("")[0].function == Program::kFunction);
  CHECK_FALSE(fs::exists(fs::path{program.path()}.parent_path() / "cache"));
  program.main_found();
  program.forge_kept();
  CHECK(program.main_found("b1")[0].function == Program::kFunction);
}

TEST_CASE("what is kept is added to") {
  const Program program;
  program.main_found();
  const std::string name = program.only_kept_file().filename();
  {
    recording::CachedSymbols symbols{recording::ModuleSymbols::open(program.path(), {}), "b0",
                                     program.cache()};
    symbols.find(Program::kSomewhere + 1);
  }
  program.forge_kept();
  CHECK(program.main_found()[0].function.starts_with("!"));
  CHECK(program.only_kept_file().filename() == name);
}
