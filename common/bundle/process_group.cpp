#include "common/bundle/process_group.h"

#include <array>

#include "common/session/vocabulary.h"

namespace oomrec::bundle {
namespace {

const RecordedProcess* parent_of(const RecordedProcess& child,
                                 std::span<const RecordedProcess> all) noexcept {
  const RecordedProcess* parent = nullptr;
  for (const RecordedProcess& other : all) {
    if (other.pid != child.parent_pid || &other == &child || other.start_ticks > child.start_ticks)
      continue;
    if (parent == nullptr || other.start_ticks > parent->start_ticks) parent = &other;
  }
  return parent;
}

// The first member of the group among the ancestors of `process` decides. Bounded, because forged
// pids may form a cycle.
Relation relation_of(const RecordedProcess& process,
                     std::span<const RecordedProcess> all) noexcept {
  const RecordedProcess* at = &process;
  for (std::size_t step = 0; step < all.size(); ++step) {
    at = parent_of(*at, all);
    if (at == nullptr) break;
    if (at->relation == Relation::self) return step == 0 ? Relation::child : Relation::descendant;
    if (at->relation == Relation::child) return Relation::descendant;
    if (at->relation != Relation::none)
      return at->relation == Relation::descendant ? Relation::descendant : Relation::relative;
  }
  return Relation::none;
}

}  // namespace

std::string_view name_of(Relation relation) noexcept {
#define X(name) std::string_view{#name},
  static constexpr auto kNames = std::to_array<std::string_view>({OOMREC_RELATIONS(X)});
#undef X
  return oomrec::name_of(kNames, relation);
}

void set_relations(std::span<RecordedProcess> all) noexcept {
  for (RecordedProcess& process : all) process.relation = Relation::none;
  all[0].relation = Relation::self;
  Relation above = Relation::parent;
  for (const RecordedProcess* at = parent_of(all[0], all);
       at != nullptr && at->relation == Relation::none; at = parent_of(*at, all)) {
    all[static_cast<std::size_t>(at - all.data())].relation = above;
    above = Relation::ancestor;
  }
  for (RecordedProcess& process : all)
    if (process.relation == Relation::none) process.relation = relation_of(process, all);
}

}  // namespace oomrec::bundle
