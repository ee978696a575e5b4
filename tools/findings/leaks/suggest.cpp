#include "tools/findings/leaks/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::findings {
namespace {

// What the rules look at: a leak's frames, innermost first.
struct Frames {
  const Leak& leak;
  const recording::Places& places;
  std::vector<recording::PlaceId> stack;

  template <class Is>
  bool any(Is is) const {
    return std::any_of(stack.begin(), stack.end(),
                       [&](recording::PlaceId id) { return is(places[id]); });
  }
  bool in_module(std::string_view word) const {
    return any([&](const recording::Place& place) {
      const std::string path = places.module_path(place);
      return path.find(word, path.rfind('/') + 1) != std::string::npos;
    });
  }
  bool in_file(std::string_view word) const {
    return any(
        [&](const recording::Place& place) { return place.file.find(word) != std::string::npos; });
  }
  bool runs_python() const {
    return any(
        [](const recording::Place& place) { return place.kind == recording::Place::Kind::python; });
  }
};

bool is_graph(const Frames& frames) { return frames.in_module("libtorch"); }

struct Rule {
  bool (*fits)(const Frames&);
  std::string_view text;  // {}: the line or function
};

constexpr std::array<Rule, 9> kRules = {{
    {[](const Frames& f) { return is_graph(f) && f.runs_python(); },
     "{}: tensors are kept. A loss or an output that goes into a list keeps its whole graph: store "
     "loss.item() or tensor.detach(), and evaluate under torch.no_grad()"},
    {[](const Frames& f) { return f.leak.space == Space::torch || is_device_space(f.leak.space); },
     "{}: memory of the device is kept. Drop the last reference (del), or free what was allocated "
     "by hand"},
    {[](const Frames& f) { return f.in_module("_multiarray_umath") || f.in_file("/numpy/"); },
     "{}: arrays are kept. Look for the list, dict or attribute that holds them; a slice keeps the "
     "whole array it is of: keep slice.copy()"},
    {[](const Frames& f) { return f.in_module("_ctypes") || f.in_module("_cffi"); },
     "{}: a library is called through ctypes or cffi, and what it returns is the caller's to free: "
     "call its free function"},
    {[](const Frames& f) { return f.runs_python() && f.leak.space == Space::map; },
     "{}: objects or mappings are kept. Look for the list, dict, cache or closure that holds them; "
     "gc.get_referrers(object) tells who does"},
    {[](const Frames& f) { return f.runs_python(); },
     "{}: what it makes is kept. Look for the list, dict, cache or closure that holds it; give a "
     "cache a bound (functools.lru_cache(maxsize=…))"},
    {[](const Frames& f) { return f.leak.space == Space::map; },
     "{}: mappings are made and not undone: look for the munmap that is missing"},
    {[](const Frames& f) {
       return f.any([](const recording::Place& place) {
         return place.function.starts_with("operator new") || place.function.starts_with("std::");
       });
     },
     "{}: objects are kept. Look for a container that only grows, a delete that is missing, or "
     "shared_ptrs that hold each other"},
    {[](const Frames&) { return true; },
     "{}: blocks are kept. Look for the free that is missing on one of its ways out, or a table "
     "that only grows"},
}};

}  // namespace

std::string suggestion_of(const Leak& leak, const recording::Stacks& stacks,
                          const recording::Places& places) {
  const Frames frames{leak, places, stacks.places(leak.stack)};
  const auto rule =
      std::find_if(kRules.begin(), kRules.end(), [&](const Rule& one) { return one.fits(frames); });
  const std::string where = leak.subject != 0 ? recording::place_text(places[leak.subject], places)
                                              : std::string{"unknown code"};
  return fmt::format(fmt::runtime(rule->text), where);
}

std::vector<std::string> suggestions_of(const Leaks& leaks, const recording::Stacks& stacks,
                                        const recording::Places& places) {
  std::vector<std::string> texts;
  for (const Leak& leak : leaks.leaks) {
    std::string text = suggestion_of(leak, stacks, places);
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace oomrec::tools::findings
