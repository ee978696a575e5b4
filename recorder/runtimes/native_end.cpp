#include "recorder/runtimes/native_end.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "recorder/runtimes/runtime_limit.h"
#include "recorder/session/writer.h"
#include "recorder/symbols/elf_symbols.h"
#include "recorder/symbols/file_symbols.h"

namespace oomrec::recorder {
namespace {

constexpr unsigned kMostHandled = 8;
constexpr unsigned kMostBases = 16;

std::uint64_t word_at(InHook hook, std::uint64_t address) noexcept {
  std::uint64_t word = 0;
  symbols::read_own_memory(hook, address, &word, sizeof word);
  return word;
}

std::string_view text_at(InHook hook, std::uint64_t address, std::span<char> text) noexcept {
  std::size_t length = 0;
  while (length + 1 < text.size() &&
         symbols::read_own_memory(hook, address + length, &text[length], 1) && text[length] != '\0')
    ++length;
  text[length] = '\0';
  return {text.data(), length};
}

// std::type_info: its vtable, then its name.
std::string_view name_of_type(InHook hook, std::uint64_t type, std::span<char> text) noexcept {
  return text_at(hook, word_at(hook, type + 8), text);
}

// The name of the type_info's own class, which says where the base classes are listed.
std::string_view kind_of_type(InHook hook, std::uint64_t type, std::span<char> text) noexcept {
  const std::uint64_t vtable = word_at(hook, type);
  return vtable == 0 ? std::string_view{} : name_of_type(hook, word_at(hook, vtable - 8), text);
}

// Which bases of a type count: all, or only those whose parts lie at the object's own address.
enum class Bases : std::uint8_t { all, at_start };

bool is_a(InHook hook, std::uint64_t thrown, std::string_view name, Bases which) noexcept {
  std::uint64_t types[kMostBases] = {thrown};
  unsigned count = thrown != 0 ? 1 : 0;
  for (unsigned at = 0; at < count; ++at) {
    char text[64];
    const std::uint64_t type = types[at];
    if (name_of_type(hook, type, text).ends_with(name)) return true;
    const std::string_view kind = kind_of_type(hook, type, text);
    if (kind.ends_with("__si_class_type_infoE")) {  // one base
      if (count < kMostBases) types[count++] = word_at(hook, type + 16);
    } else if (which == Bases::all &&
               kind.ends_with("__vmi_class_type_infoE")) {  // flags, number of bases, bases
      const auto bases = static_cast<std::uint32_t>(word_at(hook, type + 16) >> 32);
      for (std::uint32_t i = 0; i < bases && count < kMostBases; ++i)
        types[count++] = word_at(hook, type + 24 + i * std::uint64_t{16});
    }
  }
  return false;
}

bool is_bad_alloc(InHook hook, std::uint64_t type) noexcept {
  return is_a(hook, type, "St9bad_alloc", Bases::all);
}

// Only to be returned as the C++ ABI returns a std::exception_ptr: by its address. Never released:
// the process ends.
struct ExceptionPointer {
  std::uint64_t object;
  ~ExceptionPointer() {}  // NOLINT(modernize-use-equals-default)
};

// What std::runtime_error and std::logic_error have behind their vtable, and std::system_error
// behind that.
constexpr std::uint64_t kMessageAt = 8, kErrorAt = 16;

bool says_memory(InHook hook, symbols::ElfSymbols& runtime, std::uint64_t type,
                 int error) noexcept {
  if (!is_a(hook, type, "St13runtime_error", Bases::at_start) &&
      !is_a(hook, type, "St11logic_error", Bases::at_start))
    return false;
  const std::uint64_t function = runtime.address_of(hook, "_ZSt17current_exceptionv");
  if (function == 0) return false;
  const auto [object] = reinterpret_cast<ExceptionPointer (*)()>(function)();
  char message[200];
  if (object == 0) return false;
  if (is_about_memory(text_at(hook, word_at(hook, object + kMessageAt), message))) return true;
  // As libstdc++ and libc++ name it.
  const bool has_error = is_a(hook, type, "St12system_error", Bases::at_start) ||
                         is_a(hook, type, "12system_errorE", Bases::at_start);
  return error != 0 && has_error && static_cast<int>(word_at(hook, object + kErrorAt)) == error;
}

// Where an exception's header has its type and the next exception: libc++abi begins it with two
// more words.
struct HeaderLayout {
  std::uint64_t type, next;
};
constexpr HeaderLayout kLayouts[] = {{0, 32}, {16, 48}};

}  // namespace

bool is_about_memory(std::string_view message) noexcept {
  constexpr std::string_view kPhrases[] = {
      "out of memory",     "bad_alloc",           "allocate memory", "memory allocation",
      "not enough memory", "insufficient memory", "memory exhausted"};
  const auto same = [](char a, char b) { return b == (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a); };
  return std::any_of(std::begin(kPhrases), std::end(kPhrases), [&](std::string_view phrase) {
    return std::search(message.begin(), message.end(), phrase.begin(), phrase.end(), same) !=
           message.end();
  });
}

ThrownException thrown_exception(InHook hook, std::uint64_t runtime, int error,
                                 std::span<char> name) noexcept {
  name[0] = '\0';
  symbols::ElfSymbols symbols{hook, runtime};
  const std::uint64_t globals_function = symbols.address_of(hook, "__cxa_get_globals_fast");
  const std::uint64_t type_function = symbols.address_of(hook, "__cxa_current_exception_type");
  if (globals_function == 0 || type_function == 0) return {};
  const auto globals = reinterpret_cast<std::uint64_t (*)()>(globals_function)();
  std::uint64_t exception = globals != 0 ? word_at(hook, globals) : 0;
  if (exception == 0) return {};
  const auto type = reinterpret_cast<std::uint64_t (*)()>(type_function)();
  name_of_type(hook, type, name);
  ThrownException thrown{.is_bad_alloc = is_bad_alloc(hook, type),
                         .says_memory = says_memory(hook, symbols, type, error)};
  const auto* const layout =
      std::find_if(std::begin(kLayouts), std::end(kLayouts), [&](const HeaderLayout& candidate) {
        return word_at(hook, exception + candidate.type) == type;
      });
  if (layout == std::end(kLayouts)) return thrown;
  for (unsigned i = 0; i < kMostHandled; ++i) {
    exception = word_at(hook, exception + layout->next);
    if (exception == 0) break;
    if (is_bad_alloc(hook, word_at(hook, exception + layout->type)))
      thrown.handled_bad_alloc = true;
  }
  return thrown;
}

namespace {

using session::g_session;

constexpr std::uint32_t kMostAbortFrames = 20;  // of abort, then of the standard library

// In both of Rust's manglings.
constexpr std::string_view kNames[] = {"handle_alloc_error", "rust_oom",
                                       "__rust_alloc_error_handler"};
constexpr std::string_view kOfUnwrap = "6result13unwrap_failed";

bool is_alloc_error(std::string_view name) noexcept {
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view part) { return name.find(part) != name.npos; });
}

}  // namespace

bool ended_for_failure_in_rust(InHook hook, const session::Crash& crash, bool at_once) noexcept {
  const session::View view = g_session.view();
  for (std::uint32_t i = 0; i < std::min(crash.frame_count, kMostAbortFrames); ++i) {
    session::Module module{};
    char path[512];
    if (session::kind_of(crash.frames[i]) != session::FrameKind::native ||
        !view.read(session::TableId::modules, session::module_of(crash.frames[i]), module) ||
        view.string(module.path).find("/libc.so") != std::string_view::npos ||
        !copy_path(module, path))
      continue;
    const symbols::FileSymbols file(hook, path, module.start);
    if (!file.valid()) continue;
    const std::string_view name = file.function_at(session::offset_of(crash.frames[i]) - 1);
    if (is_alloc_error(name) || (at_once && name.find(kOfUnwrap) != name.npos)) return true;
  }
  return false;
}

}  // namespace oomrec::recorder
