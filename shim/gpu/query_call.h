// OOMREC_QUERY_CALL(name, parameters): query_NAME(arguments…), a question to a driver. False: the
// driver has no such function or refuses, or it is not asked any more. Expects g_query_NAME, and in
// scope `queried_driver()`, the driver's `Result`, which is 0 when all went well, and `QueryScope`,
// which leaves no trace of a question in what the program is told of its own calls.
#pragma once

#include <atomic>

#define OOMREC_QUERY_CALL(name, parameters)                                       \
  struct QueryCall_##name {                                                       \
    template <class... Arguments>                                                 \
    bool operator()(Arguments... arguments) const noexcept {                      \
      void* const function = g_query_##name.load(std::memory_order_acquire);      \
      if (function == nullptr || !queried_driver().may_query()) return false;     \
      const QueryScope scope;                                                     \
      return scope.is_allowed() &&                                                \
             reinterpret_cast<Result(*) parameters>(function)(arguments...) == 0; \
    }                                                                             \
  };                                                                              \
  [[maybe_unused]] constexpr QueryCall_##name query_##name;
