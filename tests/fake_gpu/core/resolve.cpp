#include "tests/fake_gpu/core/resolve.h"

#include <cstring>
#include <string_view>

#include "tests/fake_gpu/core/entry.h"
#include "tests/fake_gpu/core/result.h"

namespace fake_gpu {
namespace {

bool cut(std::string_view& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return true;
}

struct Form {
  std::string_view base;
  bool per_thread;
};

Form form_of(std::string_view name) {
  const bool per_thread = cut(name, "_ptsz") || cut(name, "_ptds") || cut(name, "_spt");
  cut(name, "_v2") || cut(name, "_v3") || cut(name, "_v4");
  return {name, per_thread};
}

}  // namespace

int resolve(const char* name, void** function, int version, bool per_thread, Found* found) {
  if (name == nullptr || function == nullptr) return invalid_value;
  const Function* best = nullptr;
  bool best_fits = false;
  Found state = Found::no_such_name;
  for (unsigned i = 0; i < exported.count; ++i) {
    const Function& candidate = exported.first[i];
    const Form form = form_of(candidate.name);
    if (form.base != name || (form.per_thread && !per_thread)) continue;
    if (candidate.since > version) {
      if (best == nullptr) state = Found::version_too_old;
      continue;
    }
    const bool better = best == nullptr || (form.per_thread && !best_fits) ||
                        (form.per_thread == best_fits && candidate.since > best->since);
    if (!better) continue;
    best = &candidate;
    best_fits = form.per_thread;
    state = Found::success;
  }
  *function = best == nullptr ? nullptr : best->address;
  if (found != nullptr) *found = state;
  return success;
}

}  // namespace fake_gpu
