#include "recorder/stack/memory_map.h"

#include <fcntl.h>

#include <cerrno>

#include "common/system/syscalls.h"

namespace oomrec::stack {

MemoryMap::MemoryMap(InHook, char* path, std::uint32_t capacity) noexcept
    : path_(path), capacity_(capacity), file_(system::File::open("/proc/self/maps", O_RDONLY)) {}

long MemoryMap::read() noexcept {
  long got;
  do {
    got = system::call(SYS_read, file_.descriptor(), buffer_, sizeof buffer_);
  } while (got == -EINTR);
  return got;
}

int MemoryMap::get() noexcept {
  if (used_ == filled_) {
    if (!file_.is_open()) return -1;
    long got = read();
    // Empty once the main thread has ended: only the other threads still have the memory.
    if (got <= 0 && !has_text_) {
      file_ = system::File::open("/proc/thread-self/maps", O_RDONLY);
      got = file_.is_open() ? read() : -1;
    }
    if (got <= 0) return -1;
    has_text_ = true;
    used_ = 0;
    filled_ = static_cast<std::uint32_t>(got);
  }
  return static_cast<unsigned char>(buffer_[used_++]);
}

std::uint64_t MemoryMap::hexadecimal(int& last) noexcept {
  std::uint64_t value = 0;
  for (;;) {
    last = get();
    if (last >= '0' && last <= '9') {
      value = value << 4 | static_cast<std::uint64_t>(last - '0');
    } else if (last >= 'a' && last <= 'f') {
      value = value << 4 | static_cast<std::uint64_t>(last - 'a' + 10);
    } else {
      return value;
    }
  }
}

// START-END rwxp OFFSET DEV INODE   PATH
bool MemoryMap::next(MappedRange& range) noexcept {
  int c;
  range.start = hexadecimal(c);
  if (c != '-') return false;
  range.end = hexadecimal(c);
  range.readable = get() == 'r';
  range.writable = get() == 'w';
  range.executable = get() == 'x';
  get();  // p or s
  get();
  range.file_offset = hexadecimal(c);
  for (int field = 0; field < 2 && c == ' '; ++field) {
    do {
      c = get();
    } while (c != ' ' && c != '\n' && c >= 0);
  }
  while (c == ' ') c = get();
  std::uint32_t length = 0;
  for (; c != '\n' && c >= 0; c = get()) {
    if (length + 1 < capacity_) path_[length++] = static_cast<char>(c);
  }
  if (capacity_ != 0) path_[length] = '\0';
  return c == '\n';
}

}  // namespace oomrec::stack
