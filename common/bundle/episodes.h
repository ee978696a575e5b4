// Groups the bundles of a directory into episodes: the failure or death that began it, and the
// bundles that tell less of the same. Lists fold those, and retention removes them first.
//
// Works on what a manifest has, so that the dying process and every reader group alike. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/vocabulary.h"

namespace oomrec::bundle {

// `aftershock`: a later event of the root's process. `consequence`: the end of another process
// because of the root. `warning`: written before the root's death, or while it was dealt with.
#define OOMREC_EPISODE_ROLES(X) X(root) X(aftershock) X(consequence) X(warning)
#define X(name) name,
enum class EpisodeRole : std::uint8_t { OOMREC_EPISODE_ROLES(X) };
#undef X
std::string_view name_of(EpisodeRole) noexcept;

// What grouping needs to know of a bundle. Texts are hashed; 0: absent.
struct EpisodeBundle {
  std::uint64_t name;
  std::uint64_t follows;  // name of the bundle of the worker whose death it follows from
  std::uint64_t machine;  // boot: pids of different ones cannot be compared
  std::uint64_t process;
  std::uint64_t tree;            // of its process tree
  std::uint64_t created_s;       // since 1970; 0: unknown
  std::uint64_t started_s;       // of its process
  std::uint32_t number;          // NNN of its name
  std::uint32_t process_bundle;  // number within its process, from 1
  VerdictCode verdict;
  Trigger trigger;
  bool recovered;  // known to have done no harm

  // Results.
  std::uint32_t root;  // index of its episode's root; its own if it is one
  EpisodeRole role;
};

// A warning of another process, or another process' end, this far from the root may belong to it.
inline constexpr std::uint64_t kEpisodeSeconds = 30;

// Whether nothing had happened yet when it was written.
bool is_warning(const EpisodeBundle& bundle) noexcept;

// Fills in the results.
void group_episodes(std::span<EpisodeBundle> bundles) noexcept;

// Whether `one` was written before `other`.
bool is_earlier(const EpisodeBundle& one, const EpisodeBundle& other) noexcept;

// The root bundle of the newest incident; among related processes, of the first that died. Call
// after group_episodes(); the size of `bundles` if it is empty.
std::size_t newest_cause(std::span<const EpisodeBundle> bundles) noexcept;

}  // namespace oomrec::bundle
