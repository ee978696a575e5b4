#include "common/names/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>

#include "common/system/syscalls.h"
#include "common/system/units.h"
#include "common/text/text.h"

namespace oomrec::names {
namespace {

template <class Number>
bool take_number(std::string_view& text, Number& number, int base) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// What V8 calls code that was compiled from a function, whatever compiled it; the mark behind it
// tells that: ~ for bytecode, ^ + * for its compilers.
constexpr std::string_view kScripts[] = {
    "JS:", "LazyCompile:", "Function:", "Eval:", "Script:", "Module:", "wasm-function["};
constexpr std::string_view kMarks = "~^+*=-'";
// Where the place of the definition begins.
constexpr std::string_view kPlaces[] = {
    " /", " file:", " node:", " http:", " https:", " [", " evalmachine.", " webpack:"};
// Of V8; HotSpot; CPython, whose functions are known by their frames.
constexpr std::string_view kGlue[] = {
    "Builtin:",     "BytecodeHandler:", "Stub:",        "RegExp:",       "Interpreter",
    "StubRoutines", "I2C/C2I",          "RuntimeStub",  "vtable stub",   "itable stub",
    "Deoptimiz",    "ExceptionBlob",    "UncommonTrap", "SafepointBlob", "py::",
};
constexpr std::string_view kPhp = "JIT$";

template <class List>
bool begins_with_one(std::string_view text, const List& list) noexcept {
  return std::any_of(std::begin(list), std::end(list),
                     [&](std::string_view word) { return text.starts_with(word); });
}

// Cuts ":NUMBER" off the end.
bool cut_number(std::string_view& text, std::uint32_t& number) noexcept {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon + 1 == text.size()) return false;
  std::string_view digits = text.substr(colon + 1);
  if (!take_number(digits, number, 10) || !digits.empty()) return false;
  text = text.substr(0, colon);
  return true;
}

// "~render /srv/app/page.js:12:17": the function, the file, the line and the column.
GeneratedName script_name(std::string_view text) noexcept {
  GeneratedName found;
  text.remove_prefix(std::min(text.find_first_not_of(kMarks), text.size()));
  std::string_view place = text;
  std::uint32_t column = 0;
  if (!cut_number(place, column)) {
    found.function = text;
    return found;
  }
  if (!cut_number(place, found.line)) found.line = column;
  std::size_t space = place.npos;
  for (const std::string_view beginning : kPlaces) space = std::min(space, place.find(beginning));
  if (space == place.npos) space = place.rfind(' ');
  found.function = space == place.npos ? std::string_view{} : place.substr(0, space);
  found.file = space == place.npos ? place : place.substr(space + 1);
  constexpr std::string_view kFile = "file://";
  if (found.file.starts_with(kFile)) found.file.remove_prefix(kFile.size());
  return found;
}

// "void java.nio.DirectByteBuffer.<init>(int)": without the result and the parameters.
std::string_view jvm_name(std::string_view text) noexcept {
  const std::size_t parameters = text.find('(');
  const std::size_t space = text.substr(0, parameters).find(' ');
  if (!text.ends_with(')') || space == text.npos || space > parameters ||
      text.find(' ', space + 1) < parameters)
    return text;
  return text.substr(space + 1, parameters - space - 1);
}

}  // namespace

bool parse_map_line(std::string_view text, MapLine& line) noexcept {
  if (text.starts_with("0x")) text.remove_prefix(2);
  if (!take_number(text, line.start, 16) || !text.starts_with(' ')) return false;
  text.remove_prefix(1);
  if (text.starts_with("0x")) text.remove_prefix(2);
  if (!take_number(text, line.bytes, 16) || !text.starts_with(' ')) return false;
  line.name = text.substr(1);
  return line.bytes != 0 && line.start + line.bytes > line.start && !line.name.empty();
}

GeneratedName generated_name(std::string_view name) noexcept {
  for (const std::string_view script : kScripts)
    if (name.starts_with(script)) return script_name(name.substr(script.size()));
  GeneratedName found;
  found.is_glue = begins_with_one(name, kGlue);
  found.function = found.is_glue ? name : jvm_name(name);
  if (name.starts_with(kPhp)) found.function.remove_prefix(kPhp.size());
  return found;
}

namespace {

constexpr int kNoSurprises = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

}  // namespace

system::File open_perf_map(const char* root, int pid, std::uint64_t since_ns) noexcept {
  char path[512];
  text::Text text{path, sizeof path};
  text.add(root).add("/tmp/perf-").number(static_cast<std::uint64_t>(pid)).add(".map");
  if (text.truncated()) return system::File::failed(ENAMETOOLONG);
  system::File file = system::File::open(path, O_RDONLY | kNoSurprises);
  struct stat status {};
  if (!file.is_open()) return file;
  if (system::call(SYS_fstat, file.descriptor(), &status) != 0) return system::File::failed(EIO);
  const auto user = static_cast<uid_t>(system::call(SYS_geteuid));
  const bool is_ours = status.st_uid == user || user == 0;
  const bool is_new = (static_cast<std::uint64_t>(status.st_mtime) + 1) * kSecondNs >= since_ns;
  return S_ISREG(status.st_mode) && is_ours && is_new ? std::move(file)
                                                      : system::File::failed(ENOENT);
}

system::File open_perf_map(const session::Header& header) noexcept {
  if (header.pid_namespace == 0 || header.pid_namespace != system::pid_namespace())
    return system::File::failed(ESRCH);
  return open_perf_map("", static_cast<int>(header.pid), header.start_realtime_ns);
}

void find_places(const system::File& file, std::span<const Wanted> sorted,
                 std::span<std::uint64_t> places, std::span<char> buffer,
                 std::uint64_t most_ns) noexcept {
  constexpr std::uint64_t kLinesBetweenClocks = 1024;
  std::fill(places.begin(), places.end(), 0);
  const std::uint64_t deadline = system::monotonic_ns() + most_ns;
  std::uint64_t lines = 0;
  for_each_map_line(file, 0, buffer, [&](const MapLine& line, std::uint64_t at) noexcept {
    const auto first = std::lower_bound(sorted.begin(), sorted.end(), wanted(line.start, false));
    const auto last = std::lower_bound(first, sorted.end(), wanted(line.start + line.bytes, false));
    std::fill(places.begin() + (first - sorted.begin()), places.begin() + (last - sorted.begin()),
              at);
    return ++lines % kLinesBetweenClocks != 0 || system::monotonic_ns() < deadline;
  });
}

GeneratedName name_at(const system::File& file, std::uint64_t place,
                      std::span<char> buffer) noexcept {
  const long got = place == 0 ? 0 : file.read_at(place, buffer.data(), buffer.size());
  if (got <= 0) return {};
  const std::string_view text{buffer.data(), static_cast<std::size_t>(got)};
  return generated_name(text.substr(0, text.find('\n')));
}

}  // namespace oomrec::names
