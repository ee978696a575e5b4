#include "recorder/session/alive.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "common/system/syscalls.h"

namespace oomrec::session {

namespace {

pthread_mutex_t& mutex_of(Header& header) noexcept {
  static_assert(sizeof(pthread_mutex_t) <= sizeof(header.alive_mutex));
  return *reinterpret_cast<pthread_mutex_t*>(header.alive_mutex);
}

}  // namespace

bool start_life(Header& header) noexcept {
  pthread_mutexattr_t attributes;
  if (pthread_mutexattr_init(&attributes) != 0) return false;
  const bool made = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                    pthread_mutex_init(&mutex_of(header), &attributes) == 0;
  pthread_mutexattr_destroy(&attributes);
  return made && pthread_mutex_trylock(&mutex_of(header)) == 0;
}

void renew_life(Header& header) noexcept {
  pthread_mutex_t& mutex = mutex_of(header);
  if (pthread_mutex_trylock(&mutex) == EOWNERDEAD) pthread_mutex_consistent(&mutex);
}

bool robust_list_in_use() noexcept {
  void* head = nullptr;
  std::size_t bytes = 0;
  return system::call(SYS_get_robust_list, 0, &head, &bytes) != 0 || head == nullptr;
}

}  // namespace oomrec::session
