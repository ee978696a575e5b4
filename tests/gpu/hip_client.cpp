// Tries all of HIP's table, found in one of three ways: OOMREC_TEST_WAY is links, dlsym or
// resolver.
#include "tests/gpu/hip_client.h"

#include <stdlib.h>

#include <string_view>

#include "tests/gpu/trial.h"

namespace oomrec::gpu_trial {

Hip f;
OtherHip other;

#define X(name, ...) extern "C" void trial_##name();
OOMREC_HIP_FUNCTIONS(X)
#undef X

namespace {

constexpr Row kRows[] = {
#define X(name, base, ...) {#name, Api::base, trial_##name},
    OOMREC_HIP_FUNCTIONS(X)
#undef X
};

// Resolves a base name, for its default stream.
template <class Function>
void ask(const char* name, const char* base, Function& to) {
  const auto wanted = reinterpret_cast<void*>(to);
  for (const std::uint64_t flags : {0u, 2u}) {
    void* found = nullptr;
    int status = -1;
    REQUIRE(f.hipGetProcAddress(base, &found, 60300000, flags, &status) == 0);
    if (found == wanted && status == 0) {
      to = reinterpret_cast<Function>(found);
      return;
    }
  }
  FAIL(name);
}

void reach(void* library, std::string_view way) {
  if (way == "links") return reach_by_links();
#define X(name, ...) look_up(library, #name, f.name);
  OOMREC_HIP_FUNCTIONS(X)
#undef X
  if (way == "dlsym") return;
  REQUIRE(way == "resolver");
#define X(name, base, ...) ask(#name, #base, f.name);
  OOMREC_HIP_FUNCTIONS(X)
#undef X
}

}  // namespace

TEST_CASE("each function of the table: size, space, device and stack, also of a failure") {
  void* const library = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const char* const way = getenv("OOMREC_TEST_WAY");
  REQUIRE(way != nullptr);
  reach(library, way);
#define X(name, parameters) look_up(library, #name, other.name);
  OTHER_HIP_FUNCTIONS(X)
#undef X
  look_up(library, "fake_gpu_fail", g_fail);
  need(other.hipSetDevice(kOrdinal));
  try_all(kRows, {Space::hip, Space::hip_host, Space::hip_va});
}

}  // namespace oomrec::gpu_trial
