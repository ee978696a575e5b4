// A request for memory, before it is known whether it is served.
#pragma once

#include <cstdint>

#include "common/session/vocabulary.h"

namespace oomrec::recorder {

struct Request {
  Space space;
  Api api;
  std::uint64_t bytes;
  bool probe = false;        // the caller has a plan B: recorded and counted, no bundle
  std::uint8_t rule = 0;     // of --fail, that fails it (admits() finds it), from 1
  std::uint32_t device = 0;  // entry in the session's `devices`; 0: none, or not known whose
};

// Who let a request fail: the system or a driver, or our own limit or rule (admits()).
enum class FailedBy : std::uint8_t { system, recorder };

}  // namespace oomrec::recorder
