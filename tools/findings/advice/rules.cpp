#include "tools/findings/advice/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/system/units.h"
#include "tools/base/text.h"

namespace oomrec::tools::findings {
namespace {

bool is_python(const SubjectFigures& held) {
  return std::ranges::any_of(
      held.stack, [](const recording::Location& frame) { return findings::is_python(frame); });
}

std::optional<Hint> request_above_limit(const AdviceFacts& facts) {
  if (facts.request_bytes == 0 || facts.limit_bytes == 0 ||
      facts.request_bytes <= facts.limit_bytes)
    return {};
  return Hint{{},
              fmt::format("One request asked for {}, more than the whole limit of {}: freeing "
                          "other memory cannot help. Ask for it in pieces, or raise the limit.",
                          size_text(facts.request_bytes), size_text(facts.limit_bytes)),
              {}};
}

// As Locations::managed_heap() names it.
bool is_managed_heap(const SubjectFigures& row) {
  return row.subject.starts_with("[the ") &&
         row.subject.find(" heap: objects") != std::string::npos;
}

constexpr HeldRule kManagedHeap = {
    is_managed_heap, held_text,
    ". Its collector keeps what the program can reach, and not all that it frees goes back: a heap "
    "profile names what holds the objects (jcmd PID GC.heap_dump FILE for Java, runtime/pprof for "
    "Go)."};

constexpr HeldRule kLost = {
    [](const SubjectFigures& row) {
      return !is_python(row) && !is_managed_heap(row) && row.growth && !is_mostly_freed(row);
    },
    growth_text,
    ": look for a return path without free or delete, or a container that only grows."};

constexpr HeldRule kMoreAtATime = {
    [](const SubjectFigures& row) { return !is_python(row) && row.growth && is_mostly_freed(row); },
    [](const SubjectFigures& row) {
      return fmt::format(
          "{}, {} more than {} before, but of all that it allocated ({}) nearly "
          "everything was freed",
          held_text(row), size_text(static_cast<std::uint64_t>(row.growth->bytes)),
          duration_text(row.growth->window_seconds), size_text(row.ever_bytes));
    },
    ": it needs more at a time than before (bound the size or the number of what is in work), or "
    "keeps a small part."};

// By its operations, not by its profiler, which records them.
bool is_made_by_torch(const SubjectFigures& row) {
  const Frames frames = inside(row);
  constexpr std::ptrdiff_t kNext = 8;  // to the allocation
  const auto is_profiler = [](const recording::Location& frame) {
    return frame.function.starts_with("torch::profiler::");
  };
  if (std::any_of(frames.begin(), frames.begin() + std::min(std::ssize(frames), kNext),
                  is_profiler))
    return false;
  return std::any_of(frames.begin(), frames.end(), [](const recording::Location& frame) {
    return frame.function.starts_with("torch::autograd::THPVariable_");
  });
}

std::optional<Hint> growing(const AdviceFacts& facts) {
  const SubjectFigures* const held = find_large(facts, [](const SubjectFigures& row) {
    return row.growth && is_python(row) && !is_kept_graph(row) && !is_kept_item(row);
  });
  if (held == nullptr) return {};
  return Hint{{},
              growth_text(*held) +
                  ": look for a list, dictionary or closure that grows in every step and is never "
                  "emptied." +
                  (is_made_by_torch(*held) ? " If it keeps tensors that carry gradients, keep "
                                             "their .item() or .detach() instead."
                                           : ""),
              held->holder};
}

constexpr HeldRule kDataLoader = {
    [](const SubjectFigures& row) {
      return runs(row.stack, {"torch/utils/data/"}, {}) && !is_kept_item(row);
    },
    held_text,
    ", inside a DataLoader. It keeps num_workers × prefetch_factor batches ready, and each worker "
    "keeps a copy of the dataset: lower these, or let the dataset read from a file or a mapped "
    "array."};

constexpr HeldRule kPinnedMemory = {
    [](const SubjectFigures& row) {
      return row.space == Space::cuda_host || row.space == Space::hip_host;
    },
    held_text,
    " of pinned host memory, which cannot be swapped and which PyTorch keeps for reuse: pin only "
    "what is copied all the time (pin_memory=False elsewhere)."};

std::optional<Hint> device_fragmentation(const AdviceFacts& facts) {
  constexpr double kRatio = 0.3;
  for (const recording::DeviceFigures& device : facts.devices) {
    if (!device.torch || device.torch->reserved_bytes < 256 * kMiB ||
        device.torch->fragmentation_ratio() < kRatio)
      continue;
    return Hint{
        {},
        fmt::format("On {} PyTorch holds {} and uses {} of it: the rest is fragmented or cached. "
                    "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and fewer different "
                    "sizes (pad batches to a few lengths).",
                    device.label, size_text(device.torch->reserved_bytes),
                    size_text(device.torch->allocated_bytes)),
        {}};
  }
  return {};
}

std::optional<Hint> thread_arenas(const AdviceFacts& facts) {
  constexpr std::size_t kManyThreads = 8;
  if (facts.threads < kManyThreads || facts.rss_bytes < 2 * facts.host_bytes ||
      facts.rss_bytes - facts.host_bytes < 256 * kMiB)
    return {};
  return Hint{{},
              fmt::format("{} is resident, but only {} of it is in live blocks, with {} threads: "
                          "glibc keeps freed memory in many arenas. Try MALLOC_ARENA_MAX=2, or "
                          "jemalloc.",
                          size_text(facts.rss_bytes), size_text(facts.host_bytes), facts.threads),
              {}};
}

std::optional<Hint> free_heap(const AdviceFacts& facts) {
  constexpr std::uint64_t kPart = 4;  // of the heap and of all holders
  const std::uint64_t free = facts.unheld_heap_bytes;
  if (free < 64 * kMiB || free < (facts.all_bytes + free) / kPart) return {};
  return Hint{{},
              fmt::format("{} of the heap are in memory and in no block in use: mostly freed, and "
                          "kept by the allocator between other blocks. Another one may keep less "
                          "(LD_PRELOAD=libjemalloc.so.2), or glibc's with MALLOC_ARENA_MAX=2 if "
                          "many threads allocate. `oomrec fragmentation` says more.",
                          size_text(free)),
              {}};
}

std::optional<Hint> read_whole(const AdviceFacts& facts) {
  constexpr std::array<std::string_view, 6> kReaders = {"read_csv",  "read_json", "read_parquet",
                                                        "readlines", "read_text", "read_bytes"};
  const auto reads = [&](const std::vector<recording::Location>& stack) {
    return std::ranges::any_of(kReaders,
                               [&](std::string_view name) { return runs(stack, {}, {name}); });
  };
  const SubjectFigures* const held =
      find_large(facts, [&](const SubjectFigures& row) { return reads(row.stack); });
  if (held == nullptr && !reads(facts.request_stack)) return {};
  return Hint{{},
              fmt::format("{} reads a whole file into memory: read it in pieces (chunksize=…, "
                          "iterate over the file, columns=…), or map it (numpy.memmap, "
                          "memory_map=True).",
                          held != nullptr ? held_text(*held) + ", and"
                                          : std::string{"The code that was refused memory"}),
              held != nullptr ? std::optional{held->holder} : std::nullopt};
}

std::optional<Hint> many_small(const AdviceFacts& facts) {
  constexpr std::uint64_t kMany = 1'000'000;
  constexpr std::uint64_t kSmallBytes = 256;
  const SubjectFigures* const held = find_large(facts, [](const SubjectFigures& row) {
    return row.count >= kMany && row.bytes / row.count <= kSmallBytes;
  });
  if (held == nullptr) return {};
  return Hint{
      {},
      fmt::format("{}, {} on average: {}", held_text(*held), size_text(held->bytes / held->count),
                  facts.is_python
                      ? "store such values in arrays (numpy, array.array) or in classes with "
                        "__slots__, instead of one object each."
                      : "store them in arrays or an arena: an allocator adds 16 bytes to each."),
      held->holder};
}

}  // namespace

double AdviceFacts::share_of(std::uint64_t bytes) const {
  return all_bytes == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(all_bytes);
}

const std::vector<AdviceRule>& advice_rules() {
  // Most certain first.
  static const std::vector<AdviceRule> rules = {
      {"request_above_limit", request_above_limit},
      {"shared_memory", enlarge_shared_memory},
      {"shared_files", delete_shared_files},
      {"kept_graph", kept_graph},
      {"kept_items", kept_items},
      {"growing", growing},
      {"managed_heap", about_held<kManagedHeap>},
      {"lost", about_held<kLost>},
      {"more_at_a_time", about_held<kMoreAtATime>},
      {"data_loader", about_held<kDataLoader>},
      {"pinned_memory", about_held<kPinnedMemory>},
      {"cache", cache},
      {"copied_table", copied_table},
      {"read_whole", read_whole},
      {"device_fragmentation", device_fragmentation},
      {"thread_arenas", thread_arenas},
      {"free_heap", free_heap},
      {"many_small", many_small},
      {"limit", raise_limit},  // last: a line of the program is the better place to start
  };
  return rules;
}

std::vector<Hint> advice_of(const AdviceFacts& facts) {
  std::vector<Hint> found;
  for (const AdviceRule& rule : advice_rules()) {
    if (std::optional<Hint> hint = rule.advise(facts)) {
      hint->rule = rule.name;
      found.push_back(std::move(*hint));
    }
  }
  return found;
}

bool has_any(std::string_view text, Words words) {
  return std::ranges::any_of(
      words, [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool is_python(const recording::Location& frame) {
  return frame.kind == recording::Location::Kind::python;
}

bool runs(Frames frames, Words files, Words functions) {
  return std::ranges::any_of(frames, [&](const recording::Location& frame) {
    return is_python(frame) && (has_any(frame.file, files) || has_any(frame.function, functions));
  });
}

Frames inside(const SubjectFigures& held) {
  return Frames{held.stack}.first(std::min(held.line, held.stack.size()));
}

Frames outside(const SubjectFigures& held) {
  return Frames{held.stack}.subspan(std::min(held.line + 1, held.stack.size()));
}

std::string_view unqualified(std::string_view function) {
  return function.substr(function.rfind('.') + 1);
}

bool is_mostly_freed(const SubjectFigures& held) { return held.bytes < held.ever_bytes / 20; }

std::string held_text(const SubjectFigures& held) {
  return fmt::format("{} holds {} in {}", held.subject, size_text(held.bytes),
                     plural(held.count, "block", "blocks"));
}

std::string growth_text(const SubjectFigures& held) {
  return fmt::format("{}, {} of it in the last {}, none of which was freed", held_text(held),
                     size_text(static_cast<std::uint64_t>(held.growth->bytes)),
                     duration_text(held.growth->window_seconds));
}

}  // namespace oomrec::tools::findings
