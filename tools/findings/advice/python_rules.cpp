// Rules about what Python's libraries keep for a line of the program: items of a dataset, results
// in a cache, copies of tables, graphs of tensors.
//
// A rule needs a frame that proves the call, just inside of the line or just outside of its
// function. Frames further away say little: everything below a training loop runs inside PyTorch.
#include <fmt/format.h>

#include <array>

#include "common/text/own_code.h"
#include "tools/base/text.h"
#include "tools/findings/advice/rules.h"

namespace oomrec::tools::findings {
namespace {

std::string kept_text(const SubjectFigures& held) {
  return held.growth ? growth_text(held)
                     : held_text(held) + ", nearly all that it ever allocated there";
}

// --- Items of a dataset --------------------------------------------------------------------------

constexpr double kKeptShare = 0.9;  // live ÷ ever allocated

// Whether the line is in a __getitem__ of the program, or in a function of its own that one calls.
bool is_item(const SubjectFigures& held) {
  for (std::size_t i = held.line; i < held.stack.size(); ++i) {
    const recording::Location& frame = held.stack[i];
    if (!is_python(frame)) continue;
    if (!text::is_programs_own(frame.file)) return false;
    const std::string_view function = unqualified(frame.function);
    if (function == "__getitem__" || function == "__getitems__") return true;
  }
  return false;
}

bool is_kept(const SubjectFigures& held) {
  constexpr std::uint64_t kFewest = 16;  // blocks: fewer may be one item that is in use
  return held.growth ||
         (held.count >= kFewest && held.ever_bytes != 0 &&
          static_cast<double>(held.bytes) >= kKeptShare * static_cast<double>(held.ever_bytes));
}

// --- Results in a cache --------------------------------------------------------------------------

// Both are functions of CPython in C. A third, for maxsize=0, keeps nothing.
constexpr std::string_view kBoundedCache = "bounded_lru_cache_wrapper";
constexpr std::string_view kUnboundedCache = "infinite_lru_cache_wrapper";

// Whether functools.lru_cache, with this function, calls the function of the line. Never without
// the interpreter's symbols.
bool is_called_by(const SubjectFigures& held, std::string_view wrapper) {
  for (const recording::Location& frame : outside(held)) {
    if (is_python(frame)) break;
    if (frame.function.starts_with(wrapper)) return true;
  }
  return false;
}

// The Python frame that called the function of the line; null: none.
const recording::Location* python_caller(const SubjectFigures& held) {
  const Frames callers = outside(held);
  const auto caller = std::ranges::find_if(callers, is_python);
  return caller != callers.end() ? &*caller : nullptr;
}

// cachetools' wrappers are in Python. joblib.Memory and diskcache keep results on disk.
bool is_called_by_cachetools(const SubjectFigures& held) {
  const recording::Location* const caller = python_caller(held);
  return caller != nullptr && has_any(caller->file, {"/cachetools/"});
}

// By the function of the line, the function's file, or its decorator: "memoize.<locals>.wrapper".
bool is_cache_by_name(const SubjectFigures& held) {
  if (held.line >= held.stack.size()) return false;
  const auto is_name = [](std::string_view text) {
    return has_any(text, {"cache", "Cache", "memoize"});
  };
  const recording::Location& line = held.stack[held.line];
  const recording::Location* const caller = python_caller(held);
  const bool is_decorated = caller != nullptr && has_any(caller->function, {".<locals>."});
  return is_name(line.function) || (is_decorated && is_name(caller->function)) ||
         (is_python(line) && is_name(std::string_view{line.file}.substr(line.file.rfind('/') + 1)));
}

struct CacheKind {
  bool (*matches)(const SubjectFigures&);
  std::string_view advice;
};

constexpr CacheKind kCaches[] = {
    {[](const SubjectFigures& held) { return is_called_by(held, kUnboundedCache); },
     ", called through functools.cache or lru_cache(maxsize=None), which keeps every result and "
     "its "
     "arguments: if these are the results, set a maxsize, or call cache_clear()."},
    {[](const SubjectFigures& held) { return is_called_by(held, kBoundedCache); },
     ", called through functools.lru_cache, whose maxsize (128 by default) counts results, not "
     "bytes: if these are the results, set a smaller one, or call cache_clear()."},
    {is_called_by_cachetools,
     ", called through cachetools: if these are the cache's values, give it a smaller maxsize, or "
     "one in bytes (getsizeof=…)."},
    {is_cache_by_name,
     ", in a cache by the name of its function, decorator or file: give it a bound or a smaller "
     "one "
     "(functools.lru_cache(maxsize=…), a size in bytes), or empty it between steps."},
};

const CacheKind* cache_kind(const SubjectFigures& held) {
  const auto* const kind =
      std::ranges::find_if(kCaches, [&](const CacheKind& row) { return row.matches(held); });
  return kind != std::end(kCaches) ? kind : nullptr;
}

// --- Copies of tables ----------------------------------------------------------------------------

// Methods and functions of pandas that make another table of their arguments' size.
constexpr std::array<std::string_view, 15> kCopies = {
    "copy",    "astype",      "convert_dtypes", "fillna",      "ffill",
    "replace", "append",      "_append",        "concat",      "merge",
    "join",    "sort_values", "dropna",         "reset_index", "reindex"};

// The function of pandas that a line calls: the outermost frame of pandas just inside of it,
// behind the wrappers of pandas' decorators. Null: the line calls something else.
const recording::Location* pandas_call(Frames within) {
  for (auto frame = within.rbegin(); frame != within.rend(); ++frame) {
    if (!is_python(*frame) || has_any(frame->file, {"/pandas/util/_decorators.py"})) continue;
    return has_any(frame->file, {"/pandas/core/"}) ? &*frame : nullptr;
  }
  return nullptr;
}

// "merge"; empty: the line copies no table.
std::string copying_call(Frames within) {
  const recording::Location* const call = pandas_call(within);
  if (call == nullptr) return {};
  const std::string_view name = unqualified(call->function);
  if (std::ranges::find(kCopies, name) == kCopies.end()) return {};
  return std::string{name};
}

std::string copying_call(const SubjectFigures& held) { return copying_call(inside(held)); }

std::string copying_request(const AdviceFacts& facts) {
  const Frames stack{facts.request_stack};
  return copying_call(stack.first(std::min(facts.request_line, stack.size())));
}

}  // namespace

bool is_kept_item(const SubjectFigures& held) { return is_item(held) && is_kept(held); }

std::optional<Hint> kept_items(const AdviceFacts& facts) {
  const SubjectFigures* const held = find_large(facts, is_kept_item);
  if (held == nullptr) return {};
  return Hint{{},
              fmt::format("{}: unless one batch is that large, the Dataset or the loop that takes "
                          "its items keeps them. Load each item on demand, append none to self or "
                          "to a list, and keep only what is computed from it.",
                          kept_text(*held)),
              held->holder};
}

std::optional<Hint> cache(const AdviceFacts& facts) {
  const SubjectFigures* const held =
      find_large(facts, [](const SubjectFigures& row) { return cache_kind(row) != nullptr; });
  if (held == nullptr) return {};
  return Hint{{}, held_text(*held) + std::string{cache_kind(*held)->advice}, held->holder};
}

std::optional<Hint> copied_table(const AdviceFacts& facts) {
  constexpr std::string_view kAdvice =
      " Such a call needs the old table and the new one at once: assign the result to the same "
      "name or del the old one, convert columns one at a time, choose smaller types when reading "
      "(dtype=…, category), or work in chunks. In pandas 2, mode.copy_on_write saves many copies.";
  const SubjectFigures* const held =
      find_large(facts, [](const SubjectFigures& row) { return !copying_call(row).empty(); });
  if (held != nullptr) {
    return Hint{
        {},
        fmt::format("{}, made by pandas' {}().{}", held_text(*held), copying_call(*held), kAdvice),
        held->holder};
  }
  const std::string refused = copying_request(facts);
  if (refused.empty()) return {};
  return Hint{{},
              fmt::format("The request that was refused is pandas' {}(), for {}.{}", refused,
                          size_text(facts.request_bytes), kAdvice),
              {}};
}

// Evidence of a graph: its nodes, or results of several operations that are kept together. A
// result that is kept under torch.no_grad() keeps neither.
bool is_kept_graph(const SubjectFigures& held) {
  return held.growth && (held.has_graph_nodes || held.kept_operations >= 2);
}

std::optional<Hint> kept_graph(const AdviceFacts& facts) {
  const SubjectFigures* const held = find_large(facts, is_kept_graph);
  if (held == nullptr) return {};
  const std::string evidence =
      held->has_graph_nodes
          ? "with nodes of PyTorch's graph"
          : fmt::format("with results of {} operations of PyTorch that are kept together",
                        held->kept_operations);
  return Hint{{},
              fmt::format("{}, {}. A tensor that you keep may keep its whole graph: store "
                          "loss.item() or loss.detach() in lists, not the loss, and keep no "
                          "outputs across steps.",
                          growth_text(*held), evidence),
              held->holder};
}

}  // namespace oomrec::tools::findings
