// Symbols cached across commands: equal to freshly found ones, or not used.
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

const recording::SymbolCacheFile::Answers kAnswers = {
    {0x10, {}},
    {0x20, {{"plain", "", 0, false}}},
    {0x2f, {{"inner()", "/src/a.h", 7, true}, {"outer()", "/src/a.cpp", 12, false}}},
};
constexpr std::string_view kKey = "a build";

bool same(const std::vector<recording::LineInfo>& a, const std::vector<recording::LineInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const recording::LineInfo& x, const recording::LineInfo& y) {
                      return x.function == y.function && x.file == y.file && x.line == y.line &&
                             x.inlined == y.inlined;
                    });
}

bool is_empty(const recording::SymbolCacheFile& cached) {
  return cached.all().empty() && !cached.find(0x20).has_value();
}

void use(const recording::SymbolCacheFile& cached) {
  for (const auto& [address, locations] : cached.all()) cached.find(address);
  for (const std::uint64_t address : {0x0U, 0x10U, 0x20U, 0x2fU, 0x30U}) cached.find(address);
}

void set_used(const fs::path& file, std::chrono::hours ago) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - ago);
}

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(lstat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

// A copy of this program, which a test may modify.
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
  std::vector<recording::LineInfo> main_found(std::string_view build_id = "b0") const {
    recording::CachedSymbols symbols{recording::ModuleSymbols::open(path(), {}), build_id, cache()};
    return symbols.find(kSomewhere);
  }

  // Makes the cached answers differ from the file's.
  void forge_kept() const {
    const fs::path file = only_kept_file();
    const std::string bytes = cache()->read(file.filename());
    const std::size_t text = bytes.find(kFunction);
    REQUIRE(text != std::string::npos);
    std::string forged = bytes;
    forged[text] = '!';
    const std::uint64_t hash = recording::SymbolCacheFile::hash_of(
        std::string_view{forged}.substr(recording::SymbolCacheFile::kChecksumStart));
    std::memcpy(forged.data() + recording::SymbolCacheFile::kChecksumStart - sizeof hash, &hash,
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

extern "C" const char __ehdr_start;  // from the linker: the file's address 0

std::uint64_t Program::address_of_function() {
  return reinterpret_cast<std::uint64_t>(&oomrec_kept_function) -
         reinterpret_cast<std::uint64_t>(&__ehdr_start);
}

TEST_CASE("answers are read back, for the same key only") {
  const std::string bytes = recording::SymbolCacheFile::bytes_of(kAnswers, kKey);
  const recording::SymbolCacheFile cached{bytes, kKey};

  for (const auto& [address, locations] : kAnswers) {
    const auto found = cached.find(address);
    REQUIRE(found.has_value());
    CHECK(same(*found, locations));
  }
  CHECK(cached.all().size() == kAnswers.size());
  CHECK_FALSE(cached.find(0x21).has_value());
  CHECK(is_empty(recording::SymbolCacheFile{bytes, "another build"}));
  CHECK(is_empty(recording::SymbolCacheFile{}));
}

TEST_CASE("a truncated or damaged file reads as empty") {
  const std::string whole = recording::SymbolCacheFile::bytes_of(kAnswers, kKey);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK(is_empty(recording::SymbolCacheFile{whole.substr(0, length), kKey}));
  }
  CHECK(is_empty(recording::SymbolCacheFile{whole + '\0', kKey}));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    CHECK(is_empty(recording::SymbolCacheFile{flipped, kKey}));
  }
}

TEST_CASE("forged bytes with a valid checksum are read within their bounds") {
  const std::string whole = recording::SymbolCacheFile::bytes_of(kAnswers, kKey);
  for (std::size_t byte = recording::SymbolCacheFile::kChecksumStart; byte < whole.size(); ++byte) {
    for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
      // Allocated with the exact size, so that the address sanitizer sees a read past the end.
      std::string forged = whole;
      forged[byte] = value;
      const std::uint64_t hash = recording::SymbolCacheFile::hash_of(
          std::string_view{forged}.substr(recording::SymbolCacheFile::kChecksumStart));
      std::memcpy(forged.data() + recording::SymbolCacheFile::kChecksumStart - sizeof hash, &hash,
                  sizeof hash);
      use(recording::SymbolCacheFile{forged, kKey});
    }
  }
}

TEST_CASE("an answer that is too long is not cached, the others are") {
  recording::SymbolCacheFile::Answers answers = kAnswers;
  answers[0x40] = {{std::string(1 << 17, 'x'), "", 0, false}};
  const recording::SymbolCacheFile cached{recording::SymbolCacheFile::bytes_of(answers, kKey),
                                          kKey};
  CHECK_FALSE(cached.find(0x40).has_value());
  CHECK(cached.find(0x2f).has_value());
}

TEST_CASE("a cache is private, and removes its least recently used files first") {
  const ScratchDirectory scratch;
  const fs::path path = fs::path{scratch.path()} / "new" / "oomrec";
  const recording::CacheDirectory cache{path, 3000};

  cache.write("a", std::string(1000, 'a'));
  cache.write("b", std::string(1000, 'b'));
  CHECK(mode_of(path) == 0700);
  CHECK(mode_of(path / "a") == 0600);
  set_used(path / "a", std::chrono::hours{3});
  set_used(path / "b", std::chrono::hours{2});
  CHECK(cache.read("a") == std::string(1000, 'a'));  // now the most recently used
  cache.write("c", std::string(1500, 'c'));

  CHECK(cache.read("b").empty());
  CHECK(cache.read("a").size() == 1000);
  CHECK(cache.read("c").size() == 1500);
  cache.write("d", std::string(3001, 'd'));
  CHECK(cache.read("d").empty());
  CHECK(cache.read("c").size() == 1500);
}

TEST_CASE("a directory or file that others may control is not used") {
  const ScratchDirectory scratch;
  const fs::path path = fs::path{scratch.path()} / "oomrec";
  const recording::CacheDirectory cache{path};
  cache.write("a", "whole");
  REQUIRE(cache.read("a") == "whole");

  SUBCASE("the group may write") { REQUIRE(chmod(path.c_str(), 0770) == 0); }
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

TEST_CASE("the cache is in the directory that the variables name, if the user owns it") {
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
  // Another user's directory: root's, or a stranger's if we are root.
  struct stat status {};
  const bool given = geteuid() != 0 || chown((scratch.path() + "/xdg").c_str(), 12345, 12345) == 0;
  setenv("HOME", geteuid() != 0 ? "/" : (scratch.path() + "/xdg").c_str(), 1);
  if (given && stat(std::getenv("HOME"), &status) == 0 && status.st_uid != geteuid())
    CHECK(recording::CacheDirectory::of_user() == nullptr);
}

TEST_CASE("a symbol is found once, then read from the cache") {
  const Program program;
  const std::vector<recording::LineInfo> found = program.main_found();
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].function == Program::kFunction);
  CHECK(same(program.main_found(), found));

  program.forge_kept();
  CHECK(program.main_found()[0].function.starts_with("!"));
}

TEST_CASE("cached symbols of changed files are not used") {
  const Program program;
  program.main_found();
  program.forge_kept();
  set_used(program.path(), std::chrono::hours{1});
  CHECK(program.main_found()[0].function == Program::kFunction);
}

TEST_CASE("cached symbols of another build are not used; without a build-id nothing is cached") {
  const Program program;
  CHECK(program.main_found("")[0].function == Program::kFunction);
  CHECK_FALSE(fs::exists(fs::path{program.path()}.parent_path() / "cache"));
  program.main_found();
  program.forge_kept();
  CHECK(program.main_found("b1")[0].function == Program::kFunction);
}

TEST_CASE("new symbols are added to the cached ones") {
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
