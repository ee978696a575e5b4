#include "common/program/suitability.h"
#include "common/machine/platform.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "common/system/hook_scope.h"

namespace oomrec::program {
namespace {

#define X(name, meaning) std::string_view{meaning},
constexpr auto kMeanings = std::to_array<std::string_view>({OOMREC_SUITABILITIES(X)});
#undef X
#define X(name, meaning) std::string_view{#name},
constexpr auto kNames = std::to_array<std::string_view>({OOMREC_SUITABILITIES(X)});
#undef X

constexpr int kMaxScripts = 5;            // the kernel follows at most this many #! lines
constexpr std::size_t kPathBytes = 1024;  // the longest PATH entry or #! line that we follow

// Sanitizer runtimes that abort, or lose their interceptors, if another library comes first.
constexpr std::string_view kSanitizers[] = {"libasan.so", "libhwasan.so", "liblsan.so",
                                            "libtsan.so", "libclang_rt."};

// A descriptor that is closed at the end of its scope. 0, 1 and 2 are closed at once: a program
// that closed them expects its next open to return them.
class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {
    if (number_ >= 0 && number_ <= 2) {
      ::close(number_);
      number_ = -1;
    }
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  explicit operator bool() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }

  bool read_at(std::uint64_t offset, void* to, std::size_t bytes) const noexcept {
    return ::pread(number_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }
  // Reads up to `bytes`; fewer at the end of the file.
  std::size_t read_some(std::uint64_t offset, void* to, std::size_t bytes) const noexcept {
    const ssize_t got = ::pread(number_, to, bytes, static_cast<off_t>(offset));
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

 private:
  int number_;
};

bool starts_with_any(std::string_view text) noexcept {
  for (const std::string_view prefix : kSanitizers) {
    if (text.starts_with(prefix)) return true;
  }
  return false;
}

bool is_privileged(const Descriptor& file, const struct stat& status) noexcept {
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) return true;
  const mode_t set_group = S_ISGID | S_IXGRP;
  if ((status.st_mode & set_group) == set_group && status.st_gid != ::getegid()) return true;
  return ::geteuid() != 0 && ::fgetxattr(file.number(), "security.capability", nullptr, 0) > 0;
}

// The decisive parts of an ELF file; `file` starts like one but may be anything.
class Elf {
 public:
  explicit Elf(const Descriptor& file) noexcept : file_(file) {}

  Suitability suitability() noexcept {
    if (!file_.read_at(0, &header_, sizeof header_)) return Suitability::suitable;
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_machine != machine::kElfMachine)
      return Suitability::other_machine;
    Elf64_Phdr interpreter{};
    Elf64_Phdr dynamic{};
    find_segment(PT_DYNAMIC, dynamic);
    if (!find_segment(PT_INTERP, interpreter))
      return is_loader(dynamic) ? Suitability::suitable : Suitability::static_linked;
    if (!is_glibc_loader(interpreter)) return Suitability::other_libc;
    return needs_sanitizer(dynamic) ? Suitability::sanitizer : Suitability::suitable;
  }

 private:
  template <class Visit>  // Visit: bool(const Elf64_Phdr&), true to stop
  bool any_segment(Visit visit) const noexcept {
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!file_.read_at(header_.e_phoff + i * sizeof segment, &segment, sizeof segment))
        return false;
      if (visit(segment)) return true;
    }
    return false;
  }

  bool find_segment(Elf64_Word type, Elf64_Phdr& found) const noexcept {
    return any_segment([&](const Elf64_Phdr& segment) {
      if (segment.p_type != type) return false;
      found = segment;
      return true;
    });
  }

  template <class Visit>  // Visit: bool(const Elf64_Dyn&), true to stop
  bool any_dynamic(const Elf64_Phdr& dynamic, Visit visit) const noexcept {
    std::array<Elf64_Dyn, 32> entries;
    for (std::uint64_t at = 0; at < dynamic.p_filesz; at += sizeof entries) {
      const std::uint64_t left = dynamic.p_filesz - at;
      const std::size_t wanted = left < sizeof entries ? left : sizeof entries;
      const std::size_t count =
          file_.read_some(dynamic.p_offset + at, entries.data(), wanted) / sizeof entries[0];
      for (std::size_t i = 0; i < count && entries[i].d_tag != DT_NULL; ++i) {
        if (visit(entries[i])) return true;
      }
      if (count < entries.size()) return false;
    }
    return false;
  }

  // Whether it is a loader: `ld.so PROGRAM` preloads as usual, although the loader has no
  // interpreter. A static position-independent program has the flag DF_1_PIE.
  bool is_loader(const Elf64_Phdr& dynamic) const noexcept {
    if (header_.e_type != ET_DYN || dynamic.p_type != PT_DYNAMIC) return false;
    return !any_dynamic(dynamic, [](const Elf64_Dyn& entry) {
      return entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE) != 0;
    });
  }

  bool is_glibc_loader(const Elf64_Phdr& interpreter) const noexcept {
    std::array<char, 64> text;  // the end of the path, with the file's name
    const std::uint64_t bytes =
        interpreter.p_filesz < text.size() ? interpreter.p_filesz : text.size();
    const std::uint64_t from = interpreter.p_offset + interpreter.p_filesz - bytes;
    const std::string_view path{text.data(), file_.read_some(from, text.data(), bytes)};
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.starts_with("ld-linux") || name.starts_with("ld-2.");
  }

  // A sanitizer runtime that the program links first must stay first.
  bool needs_sanitizer(const Elf64_Phdr& dynamic) const noexcept {
    std::uint64_t strings = 0;
    any_dynamic(dynamic, [&](const Elf64_Dyn& entry) {
      if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
      return strings != 0;
    });
    std::uint64_t offset = 0;
    const bool loaded = any_segment([&](const Elf64_Phdr& segment) {
      if (segment.p_type != PT_LOAD || strings < segment.p_vaddr ||
          strings - segment.p_vaddr >= segment.p_filesz)
        return false;
      offset = segment.p_offset + (strings - segment.p_vaddr);
      return true;
    });
    return loaded && any_dynamic(dynamic, [&](const Elf64_Dyn& entry) {
             if (entry.d_tag != DT_NEEDED) return false;
             std::array<char, 32> name;
             const std::size_t bytes =
                 file_.read_some(offset + entry.d_un.d_val, name.data(), name.size());
             return starts_with_any({name.data(), bytes});
           });
  }

  const Descriptor& file_;
  Elf64_Ehdr header_{};
};

// "#! interpreter [argument]" → the interpreter, in place. Empty: no such line.
std::string_view interpreter_of(std::array<char, kPathBytes>& start, std::size_t bytes) noexcept {
  std::string_view line{start.data(), bytes};
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  const std::size_t from = line.find_first_not_of(" \t");
  if (from == line.npos) return {};
  line = line.substr(from);
  line = line.substr(0, line.find_first_of(" \t\r"));
  if (line.data() + line.size() >= start.data() + start.size()) return {};
  start[static_cast<std::size_t>(line.data() - start.data()) + line.size()] = '\0';
  return line;
}

Inspection scan(int directory, const char* file, int open_flags) noexcept {
  std::array<char, kPathBytes> start;
  for (int scripts = 0; scripts <= kMaxScripts; ++scripts) {
    const Descriptor opened{
        ::openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | open_flags)};
    struct stat status;
    if (!opened || ::fstat(opened.number(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    if (is_privileged(opened, status)) return {.suitability = Suitability::privileged};
    const std::size_t bytes = opened.read_some(0, start.data(), start.size());
    if (std::string_view{start.data(), bytes}.starts_with(std::string_view{ELFMAG, SELFMAG}))
      return {.suitability = Elf{opened}.suitability()};
    const std::string_view interpreter = interpreter_of(start, bytes);
    if (interpreter.empty()) return {};
    directory = AT_FDCWD;
    file = interpreter.data();
    open_flags = 0;
  }
  return {};
}

// 0, or the errno with which exec would reject this file.
int exec_error(int directory, const char* file) noexcept {
  struct stat status;
  if (::fstatat(directory, file, &status, 0) != 0) return errno;
  if (!S_ISREG(status.st_mode) || ::faccessat(directory, file, X_OK, AT_EACCESS) != 0)
    return EACCES;
  return 0;
}

}  // namespace

std::string_view meaning_of(Suitability value) noexcept {
  return kMeanings[static_cast<std::size_t>(value)];
}

std::string_view name_of(Suitability value) noexcept {
  return kNames[static_cast<std::size_t>(value)];
}

Inspection inspect_at(int directory, const char* file, int flags) noexcept {
  const KeepErrno keep;
  if (file == nullptr) return {};
  if (*file == '\0' && (flags & AT_EMPTY_PATH) != 0) {
    // /proc/self/fd/N reopens the descriptor's file, even of an O_PATH descriptor.
    char link[32] = "/proc/self/fd/";
    char digits[12];
    std::size_t count = 0;
    for (unsigned left = static_cast<unsigned>(directory); count == 0 || left != 0; left /= 10)
      digits[count++] = static_cast<char>('0' + left % 10);
    std::size_t end = sizeof "/proc/self/fd/" - 1;
    while (count != 0) link[end++] = digits[--count];
    return scan(AT_FDCWD, link, 0);
  }
  if (const int error = exec_error(directory, file); error != 0) return {.error = error};
  return scan(directory, file, (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0);
}

Inspection inspect(const char* file) noexcept { return inspect_at(AT_FDCWD, file, 0); }

Inspection inspect_in_path(const char* file, const char* path) noexcept {
  const KeepErrno keep;
  if (file == nullptr || *file == '\0') return {.error = ENOENT};
  if (::strchr(file, '/') != nullptr) return inspect(file);
  std::string_view left =
      path != nullptr ? std::string_view{path} : std::string_view{"/bin:/usr/bin"};
  const std::string_view name{file};
  Inspection last{.error = ENOENT};
  std::array<char, kPathBytes> candidate;
  for (bool more = true; more;) {
    const std::size_t colon = left.find(':');
    const std::string_view directory = left.substr(0, colon);
    more = colon != left.npos;
    if (more) left.remove_prefix(colon + 1);
    if (directory.size() + name.size() + 2 > candidate.size()) continue;
    char* end = candidate.data();
    if (!directory.empty()) {
      end = static_cast<char*>(::mempcpy(end, directory.data(), directory.size()));
      *end++ = '/';
    }
    end = static_cast<char*>(::mempcpy(end, name.data(), name.size()));
    *end = '\0';
    const int error = exec_error(AT_FDCWD, candidate.data());
    if (error == 0) return scan(AT_FDCWD, candidate.data(), 0);
    if (error == EACCES) last.error = EACCES;
  }
  return last;
}

}  // namespace oomrec::program
