// Reads what listings and retention need from the text of a manifest.json.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/bundle/episodes.h"

namespace oomrec::bundle {

// The value of `key` in a manifest, without quotes; empty if missing. A manifest's keys are unique
// and quotes in its strings are escaped, so no parser is needed.
std::string_view manifest_value(std::string_view manifest, std::string_view key) noexcept;

// Seconds since 1970 of "2026-11-21T10:15:30Z"; 0: not a time.
std::uint64_t seconds_of(std::string_view utc) noexcept;

// The bundle `name`, from its manifest.
EpisodeBundle episode_bundle(std::string_view name, std::string_view manifest) noexcept;

}  // namespace oomrec::bundle
