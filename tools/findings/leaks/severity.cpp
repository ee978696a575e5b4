#include "tools/findings/leaks/severity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/system/units.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::findings {
namespace {

struct Grade {
  std::string_view word;
  double seconds, bytes;  // a limit is reached within this time, or this much has leaked
};

constexpr std::array<Grade, 4> kGrades = {{{"critical", 3600, 1024 * kMiB},
                                           {"high", 24 * 3600, 100 * kMiB},
                                           {"medium", 0, 10 * kMiB},
                                           {"low", 0, 0}}};

// The bytes that count against the limit at the end. Nothing for RLIMIT_AS, whose address space is
// used by more than the recording counts.
std::optional<std::uint64_t> used_of(const recording::LimitLine& limit,
                                     const recording::Moment& end) {
  if (limit.device != 0) {
    const auto device =
        std::ranges::find(end.devices, limit.device, &recording::DeviceMoment::device);
    return device != end.devices.end() ? std::optional{device->counted_bytes} : std::nullopt;
  }
  if (limit.name == "--limit") {
    return end.live_bytes[static_cast<std::size_t>(Space::heap)] +
           end.live_bytes[static_cast<std::size_t>(Space::map)];
  }
  if (limit.name == "cgroup" || limit.name == "RAM") return end.rss_bytes;
  return std::nullopt;
}

double rate_of(const Leaks& leaks, const recording::LimitLine& limit,
               const recording::Recording& recording) {
  if (limit.device == 0) {
    double rate = 0;
    for (const Leak& leak : leaks.leaks)
      if (is_on_host(leak.space)) rate += leak.growth.bytes_per_second;
    return rate;
  }
  for (const DeviceGrowth& device : leaks.devices)
    if (device.device == recording::device_label(recording, limit.device))
      return device.growth.bytes_per_second;
  return 0;
}

}  // namespace

std::optional<Reach> first_reached(const Leaks& leaks, const recording::Recording& recording,
                                   const recording::Timeline& timeline) {
  std::optional<Reach> first;
  if (timeline.moments.empty()) return first;
  for (const recording::LimitLine& limit : timeline.limits) {
    const auto used = used_of(limit, timeline.moments.back());
    const double rate = rate_of(leaks, limit, recording);
    if (!used || rate <= 0) continue;
    const std::uint64_t left = limit.bytes - std::min(limit.bytes, *used);
    const double seconds = static_cast<double>(left) / rate;
    if (!first || seconds < first->seconds) first = {limit.name, limit.bytes, seconds};
  }
  return first;
}

std::string_view severity_of(const Leaks& leaks, const std::optional<Reach>& reach) {
  if (!leaks.detected()) return "none";
  const auto fits = [&](const Grade& grade) {
    return leaks.bytes() >= grade.bytes || (reach && reach->seconds < grade.seconds);
  };
  return std::ranges::find_if(kGrades, fits)->word;
}

namespace {

// The input of the rules: a leak and its frames, innermost first.
struct Frames {
  const Leak& leak;
  const recording::Locations& locations;
  std::vector<recording::LocationId> stack;

  template <class Is>
  bool any(Is is) const {
    return std::ranges::any_of(stack, [&](recording::LocationId id) { return is(locations[id]); });
  }
  bool in_module(std::string_view word) const {
    return any([&](const recording::Location& location) {
      const std::string path = locations.module_path(location);
      return path.find(word, path.rfind('/') + 1) != std::string::npos;
    });
  }
  bool in_file(std::string_view word) const {
    return any([&](const recording::Location& location) {
      return location.file.find(word) != std::string::npos;
    });
  }
  // Of the functions next to the allocation: what calls them may be an operation on tensors.
  bool is_made_by(std::string_view beginning) const {
    constexpr std::ptrdiff_t kNext = 8;
    return std::any_of(
        stack.begin(), stack.begin() + std::min(std::ssize(stack), kNext),
        [&](recording::LocationId id) { return locations[id].function.starts_with(beginning); });
  }
  bool runs_python() const {
    return any([](const recording::Location& location) {
      return location.kind == recording::Location::Kind::python;
    });
  }
};

bool is_graph(const Frames& frames) { return frames.in_module("libtorch"); }

struct Rule {
  bool (*matches)(const Frames&);
  std::string_view text;  // {}: the line or function
};

constexpr std::array<Rule, 11> kRules = {{
    {[](const Frames& f) { return f.is_made_by("torch::profiler::"); },
     "{}: records of torch.profiler are kept, one for each event until it stops. Stop it after "
     "some "
     "steps, or give it a schedule (torch.profiler.schedule); no tensor is kept"},
    {[](const Frames& f) { return f.is_made_by("torch::jit::"); },
     "{}: compiled code is kept, some for each new shape or function. Compile once, outside of the "
     "loop, and pad what varies"},
    {[](const Frames& f) { return is_graph(f) && f.runs_python(); },
     "{}: tensors are kept. A loss or an output in a list keeps its whole graph: store loss.item() "
     "or tensor.detach(), and evaluate under torch.no_grad()"},
    {[](const Frames& f) { return f.leak.space == Space::torch || is_device_space(f.leak.space); },
     "{}: device memory is kept. Drop the last reference (del), or free what was allocated "
     "explicitly"},
    {[](const Frames& f) { return f.in_module("_multiarray_umath") || f.in_file("/numpy/"); },
     "{}: arrays are kept. Look for the list, dict or attribute that holds them. A slice keeps its "
     "whole array: store slice.copy()"},
    {[](const Frames& f) { return f.in_module("_ctypes") || f.in_module("_cffi"); },
     "{}: a library is called through ctypes or cffi. The caller must free what it returns: call "
     "its free function"},
    {[](const Frames& f) { return f.runs_python() && f.leak.space == Space::map; },
     "{}: objects or mappings are kept. Look for the list, dict, cache or closure that holds them; "
     "gc.get_referrers(object) finds it"},
    {[](const Frames& f) { return f.runs_python(); },
     "{}: its objects are kept. Look for the list, dict, cache or closure that holds them; give a "
     "cache a bound (functools.lru_cache(maxsize=…))"},
    {[](const Frames& f) { return f.leak.space == Space::map; },
     "{}: mappings are created and never unmapped. Look for the missing munmap"},
    {[](const Frames& f) {
       return f.any([](const recording::Location& location) {
         return location.function.starts_with("operator new") ||
                location.function.starts_with("std::");
       });
     },
     "{}: objects are kept. Look for a container that only grows, a missing delete, or a cycle of "
     "shared_ptrs"},
    {[](const Frames&) { return true; },
     "{}: blocks are kept. Look for a return path without free, or a table that only grows"},
}};

}  // namespace

std::string suggestion_of(const Leak& leak, const recording::Stacks& stacks,
                          const recording::Locations& locations) {
  const Frames frames{leak, locations, stacks.locations(leak.stack)};
  const auto rule = std::find_if(kRules.begin(), kRules.end(),
                                 [&](const Rule& one) { return one.matches(frames); });
  const std::string subject =
      leak.subject != 0 ? recording::location_text(locations[leak.subject], locations, kColumns)
                        : std::string{"unknown code"};
  return fmt::format(fmt::runtime(rule->text), subject);
}

std::vector<std::string> suggestions_of(const Leaks& leaks, const recording::Stacks& stacks,
                                        const recording::Locations& locations) {
  std::vector<std::string> texts;
  for (const Leak& leak : leaks.leaks) {
    std::string text = suggestion_of(leak, stacks, locations);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace oomrec::tools::findings
