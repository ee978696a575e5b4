// Files, /proc and clocks for hooks.
//
// Keeps the promise of InHook: no allocation, no lock, no cancellation point, errno unchanged;
// results are values, or -errno. Tests can make the n-th call of them fail (see Injection). A
// descriptor is close-on-exec, never 0, 1 or 2 (a program that closed its stderr must not write
// into our file), and is closed with its File.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
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

  // `flags` as for open(2); O_CLOEXEC is added. `directory`: a descriptor for relative paths.
  static File open(const char* path, int flags, unsigned mode = 0) noexcept;
  static File open_at(int directory, const char* path, int flags, unsigned mode = 0) noexcept;

  // A file that is not open because of `error`, an errno.
  static File failed(int error) noexcept { return File{-error}; }

  bool is_open() const noexcept { return descriptor_ >= 0; }
  int descriptor() const noexcept { return descriptor_; }
  int error() const noexcept { return descriptor_ < 0 ? -descriptor_ : 0; }  // an errno

  // Reads until `capacity` or the end; bytes read, or -errno.
  long read(void* data, std::size_t capacity) const noexcept;
  long read_at(std::uint64_t offset, void* data, std::size_t capacity) const noexcept;

  // 0 if everything was written, else -errno.
  int write(const void* data, std::size_t bytes) const noexcept;

  int release() noexcept;  // the caller now owns the descriptor
  void close() noexcept;

 private:
  explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// The result of F_DUPFD(3) for a descriptor below 3. The kernel calls it an invalid argument if
// RLIMIT_NOFILE allows no descriptor from 3 on.
constexpr long duplicated(long result) noexcept { return result == -EINVAL ? -EMFILE : result; }

// Reads a whole file (for example of /proc), at most capacity - 1 bytes, and NUL-terminates it.
// Returns the bytes read, or -errno.
long read_file(const char* path, char* buffer, std::size_t capacity) noexcept;

// --- Calls on descriptors, which their caller closes: of the writer of a bundle

// call() with arguments as words, which a test can make fail.
long fallible_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                   long f = 0) noexcept;

int open_at(int directory, const char* path, int flags, unsigned mode = 0) noexcept;
void close(int fd) noexcept;

// Writes everything: 0, or minus an errno. A write without progress is ENOSPC.
int write_all(int fd, const void* data, std::size_t bytes) noexcept;
int write_all_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset) noexcept;

// Reads up to `capacity` bytes of a regular file or the end. Returns the bytes read, or minus an
// errno.
long read_file_at(int directory, const char* path, char* buffer, std::size_t capacity) noexcept;

int make_directory(int directory, const char* path) noexcept;  // 0700

// Creates a directory and its parents; 0 if it exists. `parent`: a buffer for a path.
int make_directories(const char* path, char* parent, std::size_t capacity) noexcept;
int rename_at(int directory, const char* from, const char* to) noexcept;
int unlink_at(int directory, const char* path, int flags) noexcept;
int stat_at(int directory, const char* path, struct stat& out) noexcept;  // does not follow links
// 0 also for file systems that do not support fsync.
int sync(int fd) noexcept;
void drop_cache(int fd) noexcept;  // flushes the file and drops it from the page cache

// Calls visit(name) for each entry of the directory except "." and "..". `buffer` receives the
// kernel's entries and is used until the end. 0 or minus an errno.
template <class Visit>
int for_each_entry(int directory, char* buffer, std::size_t capacity, Visit&& visit) noexcept {
  for (;;) {
    const long bytes = fallible_call(SYS_getdents64, directory, reinterpret_cast<long>(buffer),
                                     static_cast<long>(capacity));
    if (bytes <= 0) return static_cast<int>(bytes);
    for (long at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const struct dirent64*>(buffer + at);
      const std::string_view name{entry->d_name};
      if (name != "." && name != "..") visit(entry->d_name);
      at += entry->d_reclen;
    }
  }
}

// The `fail_at`-th call from now (1: the next) fails with `error`; with `from_then_on` so do all
// later ones. `failed` counts them. The number of calls for a bundle depends on the machine's other
// processes; `only` selects one system call by its number.
struct Injection {
  std::uint64_t fail_at = 0;
  long only = -1;
  int error = 5;  // EIO
  bool from_then_on = false;
  unsigned hang_seconds = 0;  // instead of failing, the call returns after this time
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
};
extern constinit Injection g_injection;  // only in a build with OOMREC_FAIL_INJECTION

// --- Roots: test fixtures, and file systems mounted elsewhere

struct Roots {
  char proc[256] = "/proc";
  char sys[256] = "/sys";
  char cgroup[256] = "/sys/fs/cgroup";
  char temporary[256] = "/tmp";  // TMPDIR
  char runtime[256] = "";        // XDG_RUNTIME_DIR
};
extern constinit Roots g_roots;

// Sets the roots from OOMREC_PROC_ROOT, OOMREC_SYS_ROOT, OOMREC_CGROUP_ROOT (default: fs/cgroup of
// OOMREC_SYS_ROOT), TMPDIR and XDG_RUNTIME_DIR. Call it once, before there are other threads: hooks
// must not read the environment, which the program may be changing.
void read_roots(const char* const* environment) noexcept;

// --- Facts --------------------------------------------------------------------------------------

int process_id() noexcept;
int thread_id() noexcept;

// Reads the clocks of the kernel itself, by its function in the vDSO: another preload, such as
// libfaketime, may answer for the C library's. Null: by system calls.
using ReadClock = int(int clock, struct timespec*);
void use_clock(ReadClock* of_kernel) noexcept;

std::uint64_t coarse_ns() noexcept;     // CLOCK_MONOTONIC_COARSE: 1–4 ms steps, about 5 ns
std::uint64_t monotonic_ns() noexcept;  // CLOCK_MONOTONIC
std::uint64_t realtime_ns() noexcept;   // CLOCK_REALTIME
// Processor time, by a system call: of this thread (CLOCK_THREAD_CPUTIME_ID), of all threads.
std::uint64_t processor_ns() noexcept;
std::uint64_t processor_ns_of_process() noexcept;

// Zeroes if the kernel has no random bytes yet.
void random_bytes(void* data, std::size_t bytes) noexcept;

// Field 22 of /proc/PID/stat: the start of the process in clock ticks since boot. 0: the process is
// not visible, or a zombie without another thread.
std::uint64_t start_ticks(int pid) noexcept;

// "/smaps" of a process or thread in /proc. `pid`: 0 is the calling process.
File open_file_of(int pid, const char* name) noexcept;

// A thread whose files in /proc show the process' memory: the main one, or another if that has
// ended (pthread_exit), whose files are empty. `pid`: 0 is the calling process, and the result too
// while its main thread lives.
int thread_with_memory(int pid) noexcept;

// Inode of this process' pid namespace; 0 if it is hidden, or if /proc shows another namespace.
std::uint32_t pid_namespace() noexcept;

// The id of this boot; false, and zeroes, if it is hidden.
bool boot_id(std::uint8_t (&id)[16]) noexcept;

// Whether `recorded` is the id of another boot. False also if either is hidden: systemd's
// ProcSubset=pid leaves a service only the processes in /proc.
bool is_of_other_boot(const std::uint8_t (&recorded)[16]) noexcept;

}  // namespace oomrec::system
