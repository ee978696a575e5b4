// The functions of libpthread that the command and the archives in it call; only their names count
// (meson.build).
#define X(name)    \
  void name(void); \
  void name(void) {}
// clang-format off
X(pthread_attr_setstacksize) X(pthread_create) X(pthread_detach) X(pthread_join) X(pthread_once) X(pthread_sigmask)
X(pthread_getspecific) X(pthread_key_create) X(pthread_key_delete) X(pthread_setspecific)
X(pthread_mutex_trylock) X(pthread_mutexattr_destroy) X(pthread_mutexattr_init) X(pthread_mutexattr_settype)
X(pthread_rwlock_destroy) X(pthread_rwlock_init) X(pthread_rwlock_rdlock) X(pthread_rwlock_tryrdlock)
X(pthread_rwlock_trywrlock) X(pthread_rwlock_unlock) X(pthread_rwlock_wrlock)
