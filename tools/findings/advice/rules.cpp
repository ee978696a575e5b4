#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/base/text.h"
#include "tools/findings/advice/advice.h"
#include "tools/print/duration.h"

namespace oomrec::tools::findings {
namespace {

constexpr double kMuch = 0.2;  // of what all holders hold: worth a word
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

using Words = std::initializer_list<std::string_view>;

bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

bool has_any(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return has(text, word); });
}

// Whether a Python line of the stack is in one of these files, or in a function so named.
bool runs(const std::vector<recording::Place>& stack, Words files, Words functions) {
  return std::any_of(stack.begin(), stack.end(), [&](const recording::Place& place) {
    return place.kind == recording::Place::Kind::python &&
           (has_any(place.file, files) || has_any(place.function, functions));
  });
}

// The largest that fulfils a condition, where it holds much.
template <class Condition>
const HeldBy* much_held(const AdviceFacts& facts, Condition&& condition) {
  for (const HeldBy& held : facts.held) {
    if (facts.share_of(held.bytes) < kMuch) break;
    if (condition(held)) return &held;
  }
  return nullptr;
}

std::string says(const HeldBy& held) {
  return fmt::format("{} holds {} in {}", held.subject, size_text(held.bytes),
                     plural(held.count, "block", "blocks"));
}

// And how it has come to that: "…, 412 MiB of it in the last 3 min".
std::string grew(const HeldBy& held) {
  return fmt::format("{}, {} of it in the last {} and none of that given back", says(held),
                     size_text(static_cast<std::uint64_t>(held.growth->bytes)),
                     print::duration_text(held.growth->window_seconds));
}

bool is_python(const std::vector<recording::Place>& stack) {
  return std::any_of(stack.begin(), stack.end(), [](const recording::Place& place) {
    return place.kind == recording::Place::Kind::python;
  });
}

bool is_torch(const std::vector<recording::Place>& stack) { return runs(stack, {"/torch/"}, {}); }

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

// A rule about who holds much: whom it looks for, and what it says behind how much they hold.
struct HeldRule {
  bool (*fits)(const HeldBy&);
  std::string (*begins)(const HeldBy&);  // says() or grew()
  std::string_view text;
};

template <const HeldRule& rule>
std::optional<Hint> about_held(const AdviceFacts& facts) {
  const HeldBy* const held = much_held(facts, rule.fits);
  if (held == nullptr) return {};
  return Hint{{}, rule.begins(*held) + std::string{rule.text}, held->holder};
}

constexpr HeldRule kKeptGraph = {
    [](const HeldBy& row) { return is_torch(row.stack) && row.growth; }, grew,
    ", allocated inside PyTorch: a tensor that is kept keeps its whole graph. Keep loss.item() or "
    "loss.detach() in lists, not the loss; keep no outputs across steps."};

constexpr HeldRule kLost = {
    [](const HeldBy& row) { return !is_python(row.stack) && row.growth; }, grew,
    ": look for the free or delete that is missing on one of its ways out, or a container that "
    "only grows."};

constexpr HeldRule kGrowing = {
    [](const HeldBy& row) {
      return is_python(row.stack) && !is_torch(row.stack) && row.growth.has_value();
    },
    grew,
    ": look for a list, dictionary or closure that is given something in every step and never "
    "emptied."};

constexpr HeldRule kDataLoader = {
    [](const HeldBy& row) { return runs(row.stack, {"torch/utils/data/"}, {}); }, says,
    ", inside a DataLoader: it keeps num_workers × prefetch_factor batches ready, and each worker "
    "a copy of the dataset. Lower these, or let the dataset read from a file or an array that is "
    "mapped."};

constexpr HeldRule kPinnedMemory = {
    [](const HeldBy& row) { return row.space == Space::cuda_host || row.space == Space::hip_host; },
    says,
    " of pinned host memory, which can never be swapped and which PyTorch keeps for reuse: pin "
    "only what is copied all the time (pin_memory=False elsewhere)."};

constexpr HeldRule kCache = {
    [](const HeldBy& row) {
      return has_any(row.subject, {"cache", "Cache", "memoize"}) ||
             runs(row.stack, {"cachetools/", "joblib/memory"}, {"lru_cache", "memoize", "_cached"});
    },
    says,
    ", by its name for a cache: a bound, or a smaller one (functools.lru_cache(maxsize=…), a size "
    "in bytes), or emptying it between steps gives memory back."};

std::optional<Hint> device_fragmentation(const AdviceFacts& facts) {
  constexpr double kRatio = 0.3;
  for (const recording::DeviceFigures& device : facts.devices) {
    if (!device.torch || device.torch->reserved_bytes < 256 * kMiB ||
        device.torch->fragmentation_ratio() < kRatio)
      continue;
    return Hint{
        {},
        fmt::format("On {} PyTorch holds {} and uses {} of it: the rest is in pieces, or cached. "
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
              fmt::format("{} is resident, {} of it live blocks, with {} threads: glibc keeps "
                          "an arena of freed memory for each few threads. Try "
                          "MALLOC_ARENA_MAX=2, or jemalloc.",
                          size_text(facts.rss_bytes), size_text(facts.host_bytes), facts.threads),
              {}};
}

std::optional<Hint> read_whole(const AdviceFacts& facts) {
  constexpr std::array<std::string_view, 6> kReaders = {"read_csv",  "read_json", "read_parquet",
                                                        "readlines", "read_text", "read_bytes"};
  const auto reads = [&](const std::vector<recording::Place>& stack) {
    return std::any_of(kReaders.begin(), kReaders.end(),
                       [&](std::string_view name) { return runs(stack, {}, {name}); });
  };
  const HeldBy* const held = much_held(facts, [&](const HeldBy& row) { return reads(row.stack); });
  if (held == nullptr && !reads(facts.request_stack)) return {};
  return Hint{{},
              fmt::format("{} read whole: read it in pieces (chunksize=…, iterate over the "
                          "file, columns=…), or map it (numpy.memmap, memory_map=True).",
                          held != nullptr ? says(*held) + ": a file is"
                                          : std::string{"What was refused was for a file that is"}),
              held != nullptr ? std::optional{held->holder} : std::nullopt};
}

std::optional<Hint> many_small(const AdviceFacts& facts) {
  constexpr std::uint64_t kMany = 1'000'000;
  constexpr std::uint64_t kSmallBytes = 256;
  const HeldBy* const held = much_held(facts, [](const HeldBy& row) {
    return row.count >= kMany && row.bytes / row.count <= kSmallBytes;
  });
  if (held == nullptr) return {};
  return Hint{
      {},
      fmt::format("{}, {} on average: {}", says(*held), size_text(held->bytes / held->count),
                  facts.is_python
                      ? "keep such values in arrays (numpy, array.array) or classes with "
                        "__slots__, not as objects each."
                      : "keep them in arrays or an arena; an allocator adds 16 bytes to each."),
      held->holder};
}

std::optional<Hint> shared_memory(const AdviceFacts& facts) {
  if (facts.verdict != VerdictCode::shared_memory_full) return {};
  return Hint{{},
              "The file system of shared memory is too small: give the container more "
              "(docker run --shm-size=2g, a memory emptyDir on /dev/shm), or use fewer workers.",
              {}};
}

}  // namespace

double AdviceFacts::share_of(std::uint64_t bytes) const {
  return all_bytes == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(all_bytes);
}

const std::vector<AdviceRule>& advice_rules() {
  // What is surest first.
  static const std::vector<AdviceRule> rules = {
      {"request_above_limit", request_above_limit},
      {"shared_memory", shared_memory},
      {"kept_graph", about_held<kKeptGraph>},
      {"growing", about_held<kGrowing>},
      {"lost", about_held<kLost>},
      {"data_loader", about_held<kDataLoader>},
      {"pinned_memory", about_held<kPinnedMemory>},
      {"cache", about_held<kCache>},
      {"read_whole", read_whole},
      {"device_fragmentation", device_fragmentation},
      {"thread_arenas", thread_arenas},
      {"many_small", many_small},
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

}  // namespace oomrec::tools::findings
