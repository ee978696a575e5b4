#include "recorder/session/alive.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "common/machine/page.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"

namespace oomrec::session {

namespace {

#define OOMREC_MUTEX_FUNCTIONS(X) \
  X(pthread_mutexattr_init)       \
  X(pthread_mutexattr_setpshared) \
  X(pthread_mutexattr_setrobust)  \
  X(pthread_mutexattr_destroy)    \
  X(pthread_mutex_trylock)        \
  X(pthread_mutex_consistent)

// By name: before glibc 2.34 they are in libpthread, which we must not load into a program without
// threads. The others that we call are in libc everywhere.
struct MutexFunctions {
#define X(name) decltype(&::name) name;
  OOMREC_MUTEX_FUNCTIONS(X)
#undef X
};
constinit MutexFunctions g_functions{};
enum class Lookup { due, found, absent };
constinit Lookup g_lookup = Lookup::due;

// The first session of a process is created at its start, when the loader may be called.
bool find_functions() noexcept {
  if (g_lookup != Lookup::due) return g_lookup == Lookup::found;
#define X(name) g_functions.name = reinterpret_cast<decltype(&::name)>(dlsym(RTLD_DEFAULT, #name));
  OOMREC_MUTEX_FUNCTIONS(X)
#undef X
  bool all = true;
#define X(name) all &= g_functions.name != nullptr;
  OOMREC_MUTEX_FUNCTIONS(X)
#undef X
  g_lookup = all ? Lookup::found : Lookup::absent;
  return all;
}

pthread_mutex_t& mutex_of(Header& header) noexcept {
  static_assert(sizeof(pthread_mutex_t) <= sizeof(header.alive_mutex));
  return *reinterpret_cast<pthread_mutex_t*>(header.alive_mutex);
}

bool lock_mutex(Header& header) noexcept {
  pthread_mutexattr_t attributes;
  if (g_functions.pthread_mutexattr_init(&attributes) != 0) return false;
  const bool made =
      g_functions.pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
      g_functions.pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
      pthread_mutex_init(&mutex_of(header), &attributes) == 0;
  g_functions.pthread_mutexattr_destroy(&attributes);
  return made && g_functions.pthread_mutex_trylock(&mutex_of(header)) == 0;
}

// Without libpthread nobody has given the kernel a list of robust mutexes: this one has one, of
// which the first word is the futex, as in pthread_mutex_t. A libpthread that is loaded later
// replaces the list; then readers go by the owner's pid.
struct OneMutex {
  std::uint32_t word;
  std::uint32_t unused;
  robust_list entry;
};
constinit robust_list_head g_list{};

// Pages that a list of robust mutexes leads to. One for which there is no place here stays mapped.
constexpr std::size_t kMostKept = 256;
constinit Header* g_kept[kMostKept] = {};

}  // namespace

bool lock_without_libpthread(Header& header) noexcept {
  static_assert(sizeof(OneMutex) <= sizeof(header.alive_mutex));
  auto& mutex = *reinterpret_cast<OneMutex*>(header.alive_mutex);
  mutex = {static_cast<std::uint32_t>(system::call(SYS_gettid)), 0, {&g_list.list}};
  g_list = {{&mutex.entry}, -static_cast<long>(offsetof(OneMutex, entry)), nullptr};
  return system::call(SYS_set_robust_list, &g_list, sizeof g_list) == 0;
}

bool start_life(Header& header) noexcept {
  return find_functions() ? lock_mutex(header) : lock_without_libpthread(header);
}

void renew_life(Header& header) noexcept {
  if (g_lookup != Lookup::found) return;
  pthread_mutex_t& mutex = mutex_of(header);
  if (g_functions.pthread_mutex_trylock(&mutex) == EOWNERDEAD)
    g_functions.pthread_mutex_consistent(&mutex);
}

bool end_life(Header& header) noexcept {
  pthread_mutex_t& mutex = mutex_of(header);
  const auto word = std::atomic_ref{*reinterpret_cast<std::uint32_t*>(header.alive_mutex)}.load();
  const std::uint32_t owner = word & FUTEX_TID_MASK;
  if (owner == 0 || (word & FUTEX_OWNER_DIED) != 0) return true;
  if (owner != static_cast<std::uint32_t>(system::call(SYS_gettid))) return false;
  if (g_lookup == Lookup::found)
    pthread_mutex_unlock(&mutex);
  else
    g_list.list.next = &g_list.list;
  return true;
}

void keep_for_owner(Header& header) noexcept {
  for (Header*& place : g_kept) {
    if (place != nullptr) continue;
    place = &header;
    return;
  }
}

void release_kept() noexcept {
  for (Header*& header : g_kept) {
    if (header == nullptr || !end_life(*header)) continue;
    system::unmap(header, machine::page_bytes());
    header = nullptr;
  }
}

bool robust_list_in_use() noexcept {
  void* head = nullptr;
  std::size_t bytes = 0;
  return system::call(SYS_get_robust_list, 0, &head, &bytes) != 0 || head == nullptr;
}

}  // namespace oomrec::session
