#include "common/bundle/process_group.h"

#include <array>

#include "common/session/vocabulary.h"

namespace oomrec::bundle {
namespace {

const Kin* parent_of(const Kin& child, std::span<const Kin> all) noexcept {
  const Kin* parent = nullptr;
  for (const Kin& other : all) {
    if (other.pid != child.parent_pid || &other == &child || other.start_ticks > child.start_ticks)
      continue;
    if (parent == nullptr || other.start_ticks > parent->start_ticks) parent = &other;
  }
  return parent;
}

// On the way up from `kin`, the first one that is of the group says what `kin` is. Forged pids may
// lead in a circle.
Relation relation_of(const Kin& kin, std::span<const Kin> all) noexcept {
  const Kin* at = &kin;
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

void relate(std::span<Kin> all) noexcept {
  for (Kin& kin : all) kin.relation = Relation::none;
  all[0].relation = Relation::self;
  Relation above = Relation::parent;
  for (const Kin* at = parent_of(all[0], all); at != nullptr && at->relation == Relation::none;
       at = parent_of(*at, all)) {
    all[static_cast<std::size_t>(at - all.data())].relation = above;
    above = Relation::ancestor;
  }
  for (Kin& kin : all)
    if (kin.relation == Relation::none) kin.relation = relation_of(kin, all);
}

}  // namespace oomrec::bundle
