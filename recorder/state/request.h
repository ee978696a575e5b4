// A request for memory, before its outcome is known.
#pragma once

#include <cstdint>

#include "common/session/functions.h"

namespace oomrec::recorder {

// For Request::huge_page_log2: pages of the machine's default size.
inline constexpr std::uint8_t kDefaultHugePage = 1;

struct Request {
  Space space;
  Api api;
  std::uint64_t bytes;
  bool probe = false;        // the caller has a fallback: recorded and counted, no bundle
  std::uint8_t rule = 0;     // the rule of --fail that fails it (set by admits()), from 1; 0: none
  std::uint32_t device = 0;  // entry in the session's `devices`; 0: none, or unknown
  bool commits = false;      // address space that the program reserved before
  bool locks = false;        // the memory would be locked: RLIMIT_MEMLOCK applies
  std::uint8_t huge_page_log2 = 0;  // needs huge pages of this size; 0: none
  std::uint64_t old_block = 0;      // address that a realloc was to resize; 0: none
};

// Who failed a request: the system or a driver, or our own limit or rule (admits()).
enum class FailedBy : std::uint8_t { system, recorder };

}  // namespace oomrec::recorder
