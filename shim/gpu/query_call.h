// OOMREC_QUERY_CALL(name, parameters) defines query_NAME(arguments…), a query to a driver. False:
// the driver has no such function or fails, or it is no longer queried. Expects in scope:
// g_query_NAME, `queried_driver()`, the driver's `Result` (0: success), and `QueryScope`, which
// hides queries from the program's view of its own calls.
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
