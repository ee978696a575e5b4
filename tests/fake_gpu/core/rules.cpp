#include "tests/fake_gpu/core/rules.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace fake_gpu {
namespace {

struct Rule {
  char function[64];
  long value;         // a result, or microseconds
  unsigned long nth;  // the only call it applies to, from 1; 0: every call
  unsigned long seen;
};

struct Rules {
  Rule rules[64];
  unsigned count;
};

// "cuMemAlloc_v2=2:nth=3;cuCtxCreate_v2=2". An invalid rule ends the program, so that a misspelt
// test does not pass.
Rules parse(const char* text) {
  Rules parsed = {};
  while (text != nullptr && *text != '\0') {
    Rule rule = {};
    int read = 0;
    const int fields = std::sscanf(text, "%63[^=;]=%ld%n", rule.function, &rule.value, &read);
    if (fields != 2 || parsed.count == std::size(parsed.rules)) {
      std::fprintf(stderr, "fake_gpu: no rule: %s\n", text);
      std::abort();
    }
    text += read;
    if (std::sscanf(text, ":nth=%lu%n", &rule.nth, &read) == 1) text += read;
    text += *text == ';';
    parsed.rules[parsed.count++] = rule;
  }
  return parsed;
}

Rules g_failures = parse(std::getenv("FAKE_GPU_FAIL"));
Rules g_delays = parse(std::getenv("FAKE_GPU_DELAY_US"));

// The value of the rule for this call of the function; 0: none.
long value_for(Rules& rules, const char* function) {
  long value = 0;
  for (unsigned i = 0; i < rules.count; ++i) {
    Rule& rule = rules.rules[i];
    if (std::strcmp(rule.function, function) != 0) continue;
    const unsigned long call = __atomic_add_fetch(&rule.seen, 1, __ATOMIC_RELAXED);
    if (rule.nth == 0 || rule.nth == call) value = rule.value;
  }
  return value;
}

}  // namespace

int failure_by_rule(const Function& function) {
  return static_cast<int>(value_for(g_failures, function.name));
}

void delay(const Function& function) {
  const long microseconds = value_for(g_delays, function.name);
  if (microseconds == 0) return;
  const timespec pause = {microseconds / 1'000'000, microseconds % 1'000'000 * 1000};
  nanosleep(&pause, nullptr);
}

}  // namespace fake_gpu

#define FAKE_GPU_EXPORT extern "C" __attribute__((visibility("default")))

// Replaces the failure rules; null or "": none.
FAKE_GPU_EXPORT void fake_gpu_fail(const char* rules) {
  fake_gpu::g_failures = fake_gpu::parse(rules);
}

// How many times the real function was entered.
FAKE_GPU_EXPORT unsigned long fake_gpu_calls(const char* name) {
  for (unsigned i = 0; i < fake_gpu::exported.count; ++i)
    if (std::strcmp(fake_gpu::exported.first[i].name, name) == 0)
      return fake_gpu::exported.first[i].calls;
  return 0;
}

// Clears counts and rules; keeps memory and handles.
FAKE_GPU_EXPORT void fake_gpu_reset() {
  fake_gpu_fail(nullptr);
  for (unsigned i = 0; i < fake_gpu::exported.count; ++i) fake_gpu::exported.first[i].calls = 0;
}
