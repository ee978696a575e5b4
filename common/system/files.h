// Files, /proc and clocks as a hook needs them.
//
// Promise of InHook: no allocation, no lock, no cancellation point, errno untouched; results are
// values, or -errno. A descriptor is close-on-exec, never 0, 1 or 2 (a program that closed its
// stderr must not write into our file), and does not outlive its File.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace oomrec::system {

class File {
 public:
  File() = default;
  ~File() { close(); }
  File(File&& other) noexcept : descriptor_(other.release()) {}
  File& operator=(File&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = other.release();
    }
    return *this;
  }

  // `flags` as for open(2); O_CLOEXEC is added. `directory` is a descriptor, for a relative path.
  static File open(const char* path, int flags, unsigned mode = 0) noexcept;
  static File open_at(int directory, const char* path, int flags, unsigned mode = 0) noexcept;

  // No file, because of `error`, an errno.
  static File refused(int error) noexcept { return File{-error}; }

  bool is_open() const noexcept { return descriptor_ >= 0; }
  int descriptor() const noexcept { return descriptor_; }
  int error() const noexcept { return descriptor_ < 0 ? -descriptor_ : 0; }  // an errno

  // Reads until `capacity` or the end; bytes read, or -errno.
  long read(void* data, std::size_t capacity) const noexcept;
  long read_at(std::uint64_t offset, void* data, std::size_t capacity) const noexcept;

  // 0 when everything was written, else -errno.
  int write(const void* data, std::size_t bytes) const noexcept;

  int release() noexcept;  // the caller's from now on
  void close() noexcept;

 private:
  explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// Reads a whole file (of /proc, say), at most capacity - 1 bytes, and NUL-terminates it. The bytes,
// or -errno.
long read_file(const char* path, char* buffer, std::size_t capacity) noexcept;

// --- Roots: fixtures for tests, and what is mounted elsewhere -----------------------------------

struct Roots {
  char proc[256] = "/proc";
  char sys[256] = "/sys";
  char cgroup[256] = "/sys/fs/cgroup";
  char temporary[256] = "/tmp";  // TMPDIR
};
extern constinit Roots g_roots;

// Takes the roots from OOMREC_PROC_ROOT, OOMREC_SYS_ROOT, OOMREC_CGROUP_ROOT (default: fs/cgroup of
// OOMREC_SYS_ROOT) and TMPDIR. Once, before there are other threads: hooks must not read the
// environment, which the program may be changing.
void read_roots(const char* const* environment) noexcept;

// --- Facts --------------------------------------------------------------------------------------

int process_id() noexcept;
int thread_id() noexcept;

std::uint64_t coarse_ns() noexcept;     // CLOCK_MONOTONIC_COARSE: 1–4 ms steps, about 5 ns
std::uint64_t monotonic_ns() noexcept;  // CLOCK_MONOTONIC
std::uint64_t realtime_ns() noexcept;   // CLOCK_REALTIME

// Zeroes where the kernel has no random bytes to give.
void random_bytes(void* data, std::size_t bytes) noexcept;

// Field 22 of /proc/PID/stat, the start of the process in clock ticks since boot. 0: no such
// process in sight, or only its zombie.
std::uint64_t start_ticks(int pid) noexcept;

// Inode of the pid namespace of this process; 0 where it is hidden, or /proc shows the processes of
// another one.
std::uint32_t pid_namespace() noexcept;

// This boot's id; false, and zeroes, where it is hidden.
bool boot_id(std::uint8_t (&id)[16]) noexcept;

}  // namespace oomrec::system
