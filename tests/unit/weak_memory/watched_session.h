// A new session whose memory is watched, as are the objects of the recorder that write it.
#pragma once

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdint>
#include <set>

#include "common/machine/page.h"
#include "recorder/session/writer.h"
#include "tests/unit/weak_memory/weak_memory.h"

// For messages of failed checks.
namespace doctest {
template <class T>
struct StringMaker<std::set<T>> {
  static String convert(const std::set<T>& all) {
    String text;
    for (const T& one : all) text += toString(one) + " ";
    return text;
  }
};
}  // namespace doctest

namespace oomrec::weak_memory {

inline const InHook kHook = OutsideHooks::in_hook();

// Watches where the kernel places the next mappings, up to 1 GiB: it fills the highest gap first.
inline void watch_new_mappings() {
  constexpr std::size_t kArea = std::size_t{1} << 30;
  const std::size_t page = machine::page_bytes();
  const auto map = [](std::size_t bytes) {
    void* const area = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(area != MAP_FAILED);
    return static_cast<std::byte*>(area);
  };
  std::byte* const area = map(kArea);
  munmap(area, kArea);
  for (std::byte* filler = nullptr;;) {  // of the gaps above
    filler = map(page);
    if (filler >= area && filler < area + kArea) {
      munmap(filler, page);
      break;
    }
    REQUIRE(filler > area);
  }
  watch(area, kArea);
}

// Watches all variables of the program, for code that has its own.
extern "C" char __data_start, _end;  // the linker's
inline void watch_globals() {
  watch(&__data_start, static_cast<std::size_t>(&_end - &__data_start));
}

class WatchedSession {
 public:
  // The objects begin anew, too: their reset() is called.
  template <class... Objects>
  explicit WatchedSession(Objects&... objects) {
    watch_new_mappings();
    session::Settings settings;
    settings.mode = Mode::exact;  // has all tables
    settings.session_directory = "/tmp";
    settings.budget_bytes = std::uint64_t{16} << 20;
    REQUIRE(session::g_session.create(kHook, settings));
    session::g_session.remove_file(kHook);
    watch(&session::g_session, sizeof session::g_session);
    (begin(objects), ...);
  }
  ~WatchedSession() {
    reset();
    session::g_session.close(kHook);
  }
  WatchedSession(const WatchedSession&) = delete;
  WatchedSession& operator=(const WatchedSession&) = delete;

 private:
  template <class Object>
  static void begin(Object& object) {
    if constexpr (requires { object.reset(kHook); }) {
      object.reset(kHook);
    } else {
      object.clear(kHook);
    }
    watch(&object, sizeof object);
  }
};

}  // namespace oomrec::weak_memory
