#include "common/bundle/episodes.h"

#include <array>

#include "common/verdict/kinds.h"

namespace oomrec::bundle {
namespace {

// A crash or exit this long after a failure has another cause.
constexpr std::uint64_t kFollowsSeconds = 10;

enum class Kind : std::uint8_t {
  event,      // a failure or a death that explains itself
  follower,   // names the worker that it follows from
  end,        // a death for a reason that it does not know
  warning,    // before anything has happened
  request,    // by the user or the program
  unrelated,  // nothing was short
};

Kind kind_of(const EpisodeBundle& bundle) noexcept {
  if (bundle.trigger == Trigger::simulated || bundle.verdict == VerdictCode::injected)
    return Kind::unrelated;
  if (bundle.verdict == VerdictCode::requested) return Kind::request;
  if (bundle.verdict == VerdictCode::child_killed) return Kind::follower;
  switch (verdict::kind_of(bundle.verdict).cause) {
    case verdict::Cause::alive:
      return Kind::warning;
    case verdict::Cause::other:
      return bundle.trigger == Trigger::killed && bundle.verdict != VerdictCode::crashed
                 ? Kind::end
                 : Kind::event;
    default:
      return Kind::event;
  }
}

verdict::Cause weight_of(const EpisodeBundle& bundle) noexcept {
  return verdict::kind_of(bundle.verdict).cause;
}

std::uint64_t distance_s(const EpisodeBundle& one, const EpisodeBundle& other) noexcept {
  return one.created_s > other.created_s ? one.created_s - other.created_s
                                         : other.created_s - one.created_s;
}

bool have_one_process(const EpisodeBundle& one, const EpisodeBundle& other) noexcept {
  return one.process != 0 && one.process == other.process;
}

bool have_one_tree(const EpisodeBundle& one, const EpisodeBundle& other) noexcept {
  return one.tree != 0 && one.tree == other.tree && one.process != other.process;
}

// Whether another process than the root's already ran when the root was written.
bool is_bystander(const EpisodeBundle& other, const EpisodeBundle& root) noexcept {
  return have_one_tree(other, root) && other.started_s <= root.created_s &&
         distance_s(other, root) <= kEpisodeSeconds;
}

class Grouping {
 public:
  explicit Grouping(std::span<EpisodeBundle> all) noexcept : all_(all) {}

  void group() noexcept {
    for (std::uint32_t i = 0; i < all_.size(); ++i) {
      all_[i].root = i;
      all_[i].role = EpisodeRole::root;
    }
    for (EpisodeBundle& bundle : all_)
      if (kind_of(bundle) == Kind::event) fold_event(bundle);
    for (EpisodeBundle& bundle : all_)  // a root may have been folded after its after-shocks
      while (all_[bundle.root].root != bundle.root) bundle.root = all_[bundle.root].root;
    for (EpisodeBundle& bundle : all_) fold_other(bundle);
  }

 private:
  void fold(EpisodeBundle& bundle, const EpisodeBundle* root, EpisodeRole role) noexcept {
    if (root == nullptr) return;
    bundle.root = root->root;
    bundle.role = role;
  }

  // The nearest event for which belongs(event) holds.
  template <class Belongs>
  const EpisodeBundle* nearest(const EpisodeBundle& to, Belongs belongs) const noexcept {
    const EpisodeBundle* found = nullptr;
    for (const EpisodeBundle& event : all_) {
      if (&event == &to || kind_of(event) != Kind::event || !belongs(event)) continue;
      if (found == nullptr || distance_s(event, to) < distance_s(*found, to)) found = &event;
    }
    return found;
  }

  // Of two events of a process within ten seconds the graver one is the root, else the first.
  void fold_event(EpisodeBundle& bundle) noexcept {
    const EpisodeBundle* const other = nearest(bundle, [&](const EpisodeBundle& event) {
      if (!have_one_process(event, bundle) || distance_s(event, bundle) > kFollowsSeconds)
        return false;
      if (event.role != EpisodeRole::root || event.recovered || bundle.recovered) return false;
      return weight_of(event) != weight_of(bundle) ? weight_of(event) > weight_of(bundle)
                                                   : is_earlier(event, bundle);
    });
    if (other != nullptr)
      fold(bundle, other,
           is_earlier(bundle, *other) ? EpisodeRole::warning : EpisodeRole::aftershock);
  }

  void fold_other(EpisodeBundle& bundle) noexcept {
    switch (kind_of(bundle)) {
      case Kind::follower:
        return fold(bundle, cause_of(bundle), EpisodeRole::consequence);
      case Kind::end:
        return fold(bundle, earlier_bystander_of(bundle), EpisodeRole::consequence);
      case Kind::warning:
        return fold(bundle, warned_of(bundle), EpisodeRole::warning);
      case Kind::request:
        return fold(bundle, requested_after(bundle), EpisodeRole::aftershock);
      case Kind::event:
      case Kind::unrelated:
        return;
    }
  }

  const EpisodeBundle* cause_of(const EpisodeBundle& follower) const noexcept {
    const EpisodeBundle* const named = nearest(follower, [&](const EpisodeBundle& event) {
      return follower.follows != 0 && event.name == follower.follows;
    });
    return named != nullptr ? named : earlier_bystander_of(follower);
  }

  const EpisodeBundle* earlier_bystander_of(const EpisodeBundle& end) const noexcept {
    return nearest(end, [&](const EpisodeBundle& event) {
      return is_bystander(end, event) && is_earlier(event, end);
    });
  }

  // However long before its own death, or while another process of the tree died.
  const EpisodeBundle* warned_of(const EpisodeBundle& warning) const noexcept {
    const EpisodeBundle* const own = nearest(warning, [&](const EpisodeBundle& event) {
      if (!have_one_process(event, warning) || event.recovered) return false;
      const bool is_death = weight_of(event) >= verdict::Cause::probable;
      return distance_s(event, warning) <= kEpisodeSeconds ||
             (is_death && is_earlier(warning, event));
    });
    if (own != nullptr) return own;
    return nearest(warning,
                   [&](const EpisodeBundle& event) { return is_bystander(warning, event); });
  }

  const EpisodeBundle* requested_after(const EpisodeBundle& request) const noexcept {
    return nearest(request, [&](const EpisodeBundle& event) {
      return have_one_process(event, request) && is_earlier(event, request) &&
             distance_s(event, request) <= kEpisodeSeconds;
    });
  }

  const std::span<EpisodeBundle> all_;
};

// The newest bundle. A warning of whatever process, short of a death by half a minute or less, is
// of the same shortage.
const EpisodeBundle* newest_of(std::span<const EpisodeBundle> bundles) noexcept {
  const EpisodeBundle *newest = nullptr, *event = nullptr;
  for (const EpisodeBundle& bundle : bundles) {
    if (newest == nullptr || is_earlier(*newest, bundle)) newest = &bundle;
    const bool is_event = kind_of(bundle) == Kind::event || kind_of(bundle) == Kind::follower;
    if (is_event && (event == nullptr || is_earlier(*event, bundle))) event = &bundle;
  }
  const bool hides_event = newest != nullptr && event != nullptr && is_warning(*newest) &&
                           newest->machine == event->machine &&
                           distance_s(*newest, *event) <= kEpisodeSeconds;
  return hides_event ? event : newest;
}

}  // namespace

std::string_view name_of(EpisodeRole role) noexcept {
#define X(name) std::string_view{#name},
  static constexpr auto kNames = std::to_array<std::string_view>({OOMREC_EPISODE_ROLES(X)});
#undef X
  return oomrec::name_of(kNames, role);
}

bool is_warning(const EpisodeBundle& bundle) noexcept { return kind_of(bundle) == Kind::warning; }

bool is_earlier(const EpisodeBundle& one, const EpisodeBundle& other) noexcept {
  if (one.created_s != other.created_s) return one.created_s < other.created_s;
  if (have_one_process(one, other)) return one.process_bundle < other.process_bundle;
  return one.number < other.number;
}

void group_episodes(std::span<EpisodeBundle> bundles) noexcept { Grouping{bundles}.group(); }

std::size_t newest_cause(std::span<const EpisodeBundle> bundles) noexcept {
  const EpisodeBundle* const newest = newest_of(bundles);
  if (newest == nullptr) return bundles.size();
  const EpisodeBundle* cause = &bundles[newest->root];
  for (bool found = true; found;) {
    found = false;
    for (const EpisodeBundle& other : bundles) {
      if (other.role != EpisodeRole::root || kind_of(other) != Kind::event ||
          kind_of(*cause) != Kind::event || weight_of(other) < weight_of(*cause) ||
          !is_earlier(other, *cause) || !is_bystander(*cause, other) ||
          distance_s(*cause, other) > kFollowsSeconds)
        continue;
      cause = &other;
      found = true;
    }
  }
  return static_cast<std::size_t>(cause - bundles.data());
}

}  // namespace oomrec::bundle
