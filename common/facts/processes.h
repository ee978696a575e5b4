// "processes.json": the process tree, and the largest others of the cgroup. `Text`: std::string, or
// std::string_view in the dying process.
#pragma once

#include <concepts>

#include "common/facts/describe.h"
#include "common/session/vocabulary.h"

namespace oomrec {

// How a recorded process belongs to the one that the bundle is about. `relative`: shares an
// ancestor; `none`: not in the tree.
#define OOMREC_RELATIONS(X) X(self) X(parent) X(ancestor) X(child) X(descendant) X(relative)
#define X(name) name,
enum class Relation : std::uint8_t { OOMREC_RELATIONS(X) none };
#undef X
#define X(name) std::string_view{#name},
inline constexpr auto kRelationNames = std::to_array<std::string_view>({OOMREC_RELATIONS(X)});
#undef X
constexpr std::string_view name_of(Relation v) noexcept { return name_of(kRelationNames, v); }

namespace facts {

template <class Text>
struct OtherProcess {
  std::int32_t pid = 0;
  Text program{};
  std::uint64_t rss_bytes = 0;
  bool is_recorded = false;
};

template <class Text>
struct Section<OtherProcess<Text>> {
  static constexpr std::string_view key = "other_process";
  static constexpr std::string_view meaning =
      "a process outside the tree: one of the ten with the most resident memory in the cgroup";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& row) {
    v.field("pid", row.pid, "its number");
    v.field("program", TextOrNull{row.program}, "what it runs");
    v.field("rss_bytes", row.rss_bytes, "its resident memory");
    v.field("recorded", Flag{row.is_recorded}, "whether oomrec records it, too");
  }
};

// As the commands print it …
template <class Text>
struct TreeProcess {
  std::int32_t pid = 0, parent_pid = 0;
  Text program{};
  Relation relation = Relation::none;
  std::uint64_t live_bytes = 0, peak_bytes = 0;
  std::uint64_t rss_bytes = 0;  // 0: unknown
  Text outcome{}, bundle{};
};
// … and in a bundle's file.
template <class Text>
struct StoredProcess : TreeProcess<Text> {
  Text process{};
};

template <class Row>
requires requires(const Row& row) {
  row.relation;
  row.peak_bytes;
}
struct Section<Row> {
  static constexpr std::string_view key = requires(Row & row) { row.process; }
  ? "stored_process" : "tree_process";
  static constexpr std::string_view meaning = "a recorded process of the process tree";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& row) {
    v.field("pid", row.pid, "its number");
    v.field("ppid", row.parent_pid, "its parent's");
    v.field("program", TextOrNull{row.program}, "what it runs");
    v.field("relation", named(row.relation, kRelationNames),
            "to the process that the bundle is about; `relative`: shares an ancestor, as siblings "
            "do");
    v.field("live_bytes", row.live_bytes, "heap and mappings, as the soft limit counts them");
    v.field("peak_bytes", row.peak_bytes,
            "the highest of heap, of mappings, or of the current sum");
    v.field("rss_bytes", known_if(row.rss_bytes != 0, row.rss_bytes),
            "read when the bundle is written; for a dead process the last value that it recorded");
    v.field("outcome", TextOrNull{row.outcome, "definitions.json#/$defs/outcome"},
            "as in metadata.json, when the bundle is written; also `exited 0`");
    v.field("bundle", TextOrNull{row.bundle}, "name of the process' latest bundle");
    if constexpr (requires { row.process; }) v.field("process", row.process, "as in manifest.json");
  }
};

// What derives from it has the members that describe() names.
struct Processes {};

template <std::derived_from<Processes> Fact>
struct Section<Fact> {
  static constexpr std::string_view key = "processes";
  static constexpr std::string_view meaning =
      "the recorded processes of the process tree, and the largest others of the cgroup";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& of) {
    v.field("schema_version", 1U, "1");
    v.field("processes", of.processes,
            "the recorded processes of the process tree, each once, this bundle's own first; at "
            "most 256");
    v.field("cgroup", TextOrNull{of.cgroup}, "directory of the memory cgroup");
    v.field("others", of.others,
            "outside the tree, the ten processes of the cgroup with the most resident memory");
    v.field("session_directory", TextOrNull{of.session_directory},
            "where the process kept its recording; `oomrec ended --session-dir` finds the bundles "
            "of a job by it");
    v.field("left_out", of.left_out, "recordings and processes beyond these bounds");
  }
};

}  // namespace facts
}  // namespace oomrec
