// The rules of --fail: which requests fail on purpose.
//
// RULE   [WHAT:]KEY=VALUE[,KEY=VALUE…], several separated by `;`. WHAT alone: each of its calls.
// WHAT   a function as in the events (malloc, mmap, pthread_create …), or `heap`: any heap function
// nth=N  the N-th call that matches the rest of the rule, once
// p=P    each such call with probability P, 0 < P ≤ 1; seed=N: another sequence of random numbers
// min=SIZE                smaller requests do not match
// site=FILE:LINE          this line of Python is on the stack
// site=MODULE!FUNCTION    this exported function is on the stack
//
// Works on text only, for library and tools; allocates nothing.
// recorder/fault_injection/fault_injection.h decides which requests fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "common/session/functions.h"

namespace oomrec::options {

struct InjectionRule {
  std::string_view text;  // as given; all texts point into it
  Api api = Api::none;    // none: any function that allocates
  bool heap_only = false;
  std::uint64_t nth = 0;     // 0: not limited to one call
  std::uint64_t chance = 0;  // as a fraction of 2^64 − 1; 0: always
  std::uint64_t seed = 0;
  std::uint64_t min_bytes = 0;
  std::string_view file;  // of a Python line: as given, any number of components
  std::uint64_t line = 0;
  std::string_view module, function;

  bool has_site() const noexcept { return line != 0 || !function.empty(); }
  bool concerns_heap() const noexcept;

  // Whether the rule matches such a request, leaving aside the stack. `by_new`: an `operator new`
  // makes the request through malloc.
  bool fits(Api, Space, std::uint64_t bytes, bool by_new) const noexcept;
};

inline constexpr unsigned kMaxRules = 8;
struct InjectionRules {
  InjectionRule rules[kMaxRules];
  unsigned count = 0;
};

// False: invalid, or more than kMaxRules; then `rules` is undefined.
bool parse_rules(std::string_view text, InjectionRules& rules) noexcept;

// Whether MODULE matches a module's path: its file name, complete or up to one of its dots
// (libtorch_cpu, libtorch_cpu.so).
bool is_module(std::string_view path, std::string_view module) noexcept;

// Whether FILE matches a code object's file: equal in their last components. Either may be longer:
// up to Python 3.8 a program's own file is as given to the interpreter.
bool is_file(std::string_view code_file, std::string_view file) noexcept;

// The calls that matched a rule, and its random numbers.
class RuleCalls {
 public:
  void start(const InjectionRule& rule) noexcept {
    calls_.store(0, std::memory_order_relaxed);
    random_.store(rule.seed, std::memory_order_relaxed);
  }

  // Counts a call that matches; returns whether it must fail.
  bool should_fail(const InjectionRule& rule) noexcept {
    if (rule.nth != 0) return calls_.fetch_add(1, std::memory_order_relaxed) + 1 == rule.nth;
    return rule.chance == 0 || draw() <= rule.chance;
  }

 private:
  // splitmix64: one addition to the shared word, so that all threads draw from one sequence.
  std::uint64_t draw() noexcept {
    constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15U;
    std::uint64_t z = random_.fetch_add(kStep, std::memory_order_relaxed) + kStep;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> random_{0};
};

}  // namespace oomrec::options
