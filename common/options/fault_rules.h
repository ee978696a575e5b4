// The rules of --fail: which requests are refused on purpose.
//
//   RULE   [WHAT:]KEY=VALUE[,KEY=VALUE…], several separated by `;`. WHAT alone: each of its calls.
//   WHAT   a function as in the events (malloc, mmap, pthread_create …), or `heap`: any of the heap
//   nth=N  the N-th call that fits the rest of the rule, once
//   p=P    each such call with probability P, 0 < P ≤ 1; seed=N: another row of random numbers
//   min=SIZE                smaller requests do not fit
//   site=FILE:LINE          that line of Python is on the stack
//   site=MODULE!FUNCTION    that exported function is
//
// Text only, shared by library and tools: allocates nothing. What is refused is decided in
// recorder/fault_injection/fault_injection.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "common/session/vocabulary.h"

namespace oomrec::options {

struct InjectionRule {
  std::string_view text;  // as it was given; all texts point into that
  Api api = Api::none;    // none: any that allocates
  bool heap_only = false;
  std::uint64_t nth = 0;     // 0: not by number
  std::uint64_t chance = 0;  // of 2^64 − 1; 0: not by chance
  std::uint64_t seed = 0;
  std::uint64_t min_bytes = 0;
  std::string_view file;  // of a line of Python: as given, any number of components
  std::uint64_t line = 0;
  std::string_view module, function;

  bool has_site() const noexcept { return line != 0 || !function.empty(); }
  bool concerns_heap() const noexcept;

  // Whether the rule speaks of such a request, as far as the stack does not matter. An `operator
  // new` may ask by malloc: `by_new`.
  bool fits(Api, Space, std::uint64_t bytes, bool by_new) const noexcept;
};

inline constexpr unsigned kMaxRules = 8;
struct InjectionRules {
  InjectionRule rules[kMaxRules];
  unsigned count = 0;
};

// False: not understood, or more than kMaxRules; `rules` is of no use then.
bool parse_rules(std::string_view text, InjectionRules& rules) noexcept;

// Whether a module's path is meant by MODULE: its file name, whole or up to one of its dots
// (libtorch_cpu, libtorch_cpu.so).
bool is_module(std::string_view path, std::string_view module) noexcept;

// Whether a code object's file is meant by FILE: equal from some component on, to the end. Either
// may be the longer: up to Python 3.8 a program's own file is as it was given to the interpreter.
bool is_file(std::string_view code_file, std::string_view file) noexcept;

// How often a rule has been asked, and what it answered.
class RuleCalls {
 public:
  void start(const InjectionRule& rule) noexcept {
    calls_.store(0, std::memory_order_relaxed);
    random_.store(rule.seed, std::memory_order_relaxed);
  }

  // One more call that fits; whether it is refused.
  bool refuses(const InjectionRule& rule) noexcept {
    if (rule.nth != 0) return calls_.fetch_add(1, std::memory_order_relaxed) + 1 == rule.nth;
    return rule.chance == 0 || draw() <= rule.chance;
  }

 private:
  // splitmix64: one addition to the shared word, so that threads draw from one row of numbers.
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
