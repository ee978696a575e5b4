// OOMREC_ASK(name, parameters): ask_NAME(arguments…), a question to a driver. False: the driver has
// no such function or refuses, or it is not asked any more. Expects g_query_NAME, and in scope
// `asked_driver()`, the driver's `Result`, which is 0 when all went well, and `Asking`, which
// leaves no trace of a question in what the program is told of its own calls.
#pragma once

#include <atomic>

#define OOMREC_ASK(name, parameters)                                              \
  struct Ask_##name {                                                             \
    template <class... Arguments>                                                 \
    bool operator()(Arguments... arguments) const noexcept {                      \
      void* const function = g_query_##name.load(std::memory_order_acquire);      \
      if (function == nullptr || !asked_driver().may_ask()) return false;         \
      const Asking asking;                                                        \
      return asking.is_allowed() &&                                               \
             reinterpret_cast<Result(*) parameters>(function)(arguments...) == 0; \
    }                                                                             \
  };                                                                              \
  [[maybe_unused]] constexpr Ask_##name ask_##name;
