// Remedies: rules with the figures that made them fire, and the reason.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/base/text.h"
#include "tools/findings/fragmentation/figures.h"

namespace oomrec::tools::findings {
namespace {

constexpr double kNotableBytesShare = 0.3;  // gpumemprof's threshold, as for devices
constexpr std::uint64_t kManyPieces = 8;

bool is_notable(std::uint64_t part, std::uint64_t whole) {
  return part >= kNotableBytes &&
         static_cast<double>(part) >= kNotableBytesShare * static_cast<double>(whole);
}

// Free memory that is not resident costs nothing.
bool heap_is_fragmented(const Fragmentation& f) {
  return f.heap.areas && is_notable(f.heap.areas->costly_bytes(), f.heap.areas->whole_bytes());
}

std::uint64_t costly_pages(const Fragmentation& f) {
  return std::min(f.heap.runs->page_bytes, f.heap.areas->costly_bytes());
}

const recording::DeviceFigures* fragmented_torch(const Fragmentation& f) {
  const auto found = std::ranges::find_if(f.devices, [](const auto& device) {
    return device.torch &&
           is_notable(device.torch->reserved_bytes -
                          std::min(device.torch->reserved_bytes, device.torch->allocated_bytes),
                      device.torch->reserved_bytes);
  });
  return found != f.devices.end() ? &*found : nullptr;
}

const recording::DeviceFigures* fragmented_pool(const Fragmentation& f) {
  const auto found = std::ranges::find_if(f.devices, [](const auto& device) {
    return !device.torch &&
           is_notable(device.pool_reserved_bytes -
                          std::min(device.pool_reserved_bytes, device.pool_used_bytes),
                      device.pool_reserved_bytes);
  });
  return found != f.devices.end() ? &*found : nullptr;
}

std::uint64_t torch_free(const recording::DeviceFigures& device) {
  return device.torch->reserved_bytes -
         std::min(device.torch->reserved_bytes, device.torch->allocated_bytes);
}

struct Rule {
  std::string_view name;
  bool (*fires)(const Fragmentation&);
  std::string (*text)(const Fragmentation&);
};

constexpr std::array<Rule, 8> kRules = {{
    {"many_arenas",
     [](const Fragmentation& f) {
       return heap_is_fragmented(f) && !f.arena_max_set && f.heap.areas->count >= kManyPieces &&
              is_notable(f.heap.areas->arenas_bytes, f.heap.areas->held_bytes);
     },
     [](const Fragmentation& f) {
       return fmt::format(
           "{} of the heap are in threads' arenas, in {} pieces: a thread does not reuse the "
           "memory "
           "that another one freed. MALLOC_ARENA_MAX=2 makes them share arenas",
           size_text(f.heap.areas->arenas_bytes), count_text(f.heap.areas->count));
     }},
    {"free_pages",
     [](const Fragmentation& f) {
       return f.heap.runs && heap_is_fragmented(f) && costly_pages(f) >= kNotableBytes;
     },
     [](const Fragmentation& f) {
       return fmt::format(
           "{} are free in whole pages: malloc_trim(0) returns them to the system (call it after a "
           "phase that allocates much), and so does a smaller MALLOC_TRIM_THRESHOLD_ at the end of "
           "the heap",
           size_text(costly_pages(f)));
     }},
    {"small_gaps",
     [](const Fragmentation& f) {
       return f.heap.runs && heap_is_fragmented(f) &&
              is_notable(f.heap.runs->bytes - f.heap.runs->page_bytes, f.heap.areas->held_bytes);
     },
     [](const Fragmentation& f) {
       return fmt::format(
           "{} are free in gaps between live blocks that are smaller than a page: malloc_trim "
           "cannot "
           "return them. An allocator with size classes (jemalloc, mimalloc: LD_PRELOAD) keeps "
           "such "
           "gaps small; so does allocating long-lived blocks apart from short-lived ones",
           size_text(f.heap.runs->bytes - f.heap.runs->page_bytes));
     }},
    {"free_heap", [](const Fragmentation& f) { return !f.heap.runs && heap_is_fragmented(f); },
     [](const Fragmentation& f) {
       return fmt::format(
           "glibc holds {} that no block uses. malloc_trim(0) returns the whole pages among them; "
           "an exact recording shows how much that is (oomrec run --mode exact)",
           size_text(f.heap.areas->costly_bytes()));
     }},
    {"torch_expandable",
     [](const Fragmentation& f) {
       return fragmented_torch(f) != nullptr && !f.expandable_segments;
     },
     [](const Fragmentation& f) {
       const recording::DeviceFigures& device = *fragmented_torch(f);
       return fmt::format(
           "PyTorch has {} of {} reserved and not allocated: "
           "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets blocks of other "
           "sizes use them",
           size_text(torch_free(device)), device.label);
     }},
    {"torch_cache",
     [](const Fragmentation& f) { return fragmented_torch(f) != nullptr && f.expandable_segments; },
     [](const Fragmentation& f) {
       const recording::DeviceFigures& device = *fragmented_torch(f);
       return fmt::format(
           "PyTorch has {} of {} reserved and not allocated, with expandable segments "
           "enabled: torch.cuda.empty_cache() between phases returns them; inputs of few different "
           "sizes keep the cache small",
           size_text(torch_free(device)), device.label);
     }},
    {"device_pool", [](const Fragmentation& f) { return fragmented_pool(f) != nullptr; },
     [](const Fragmentation& f) {
       const recording::DeviceFigures& device = *fragmented_pool(f);
       return fmt::format(
           "memory pools hold {} of {} and use {}: a lower release threshold "
           "(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) or cuMemPoolTrimTo returns the rest",
           size_text(device.pool_reserved_bytes), device.label, size_text(device.pool_used_bytes));
     }},
    {"huge_pages",
     [](const Fragmentation& f) {
       return f.map.huge_page_bytes && f.map.anonymous_bytes &&
              *f.map.huge_page_bytes >= *f.map.anonymous_bytes / 2 &&
              *f.map.anonymous_bytes > f.heap.live_bytes + f.map.live_bytes &&
              is_notable(*f.map.anonymous_bytes - f.heap.live_bytes - f.map.live_bytes,
                         *f.map.anonymous_bytes);
     },
     [](const Fragmentation& f) {
       return fmt::format(
           "{} of {} resident memory are huge pages, but only {} are live: a huge page is resident "
           "as a whole when one byte of it is used. Setting "
           "/sys/kernel/mm/transparent_hugepage/enabled to madvise limits them to programs that "
           "ask for them",
           size_text(*f.map.huge_page_bytes), size_text(*f.map.anonymous_bytes),
           size_text(f.heap.live_bytes + f.map.live_bytes));
     }},
}};

}  // namespace

std::vector<Remedy> remedies_for(const Fragmentation& figures) {
  std::vector<Remedy> remedies;
  for (const Rule& rule : kRules)
    if (rule.fires(figures)) remedies.push_back({rule.name, rule.text(figures)});
  return remedies;
}

}  // namespace oomrec::tools::findings
