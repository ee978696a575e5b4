// Reads what listings and retention need from the text of a manifest.json.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/bundle/episodes.h"
#include "common/facts/manifest.h"

namespace oomrec::bundle {

// The value of `key` in a file's text, without quotes; empty if missing or null. No parser is
// needed for a manifest: its keys are unique, and quotes in its strings are escaped.
std::string_view value_in(std::string_view text, std::string_view key) noexcept;

// Without the names of the files.
struct NoFileNames {};
using ManifestText = facts::Manifest<std::string_view, NoFileNames>;
ManifestText manifest_in(std::string_view text) noexcept;

// Seconds since 1970 of "2026-11-21T10:15:30Z"; 0: not a time.
std::uint64_t seconds_of(std::string_view utc) noexcept;

// The bundle `name`, from its manifest.
EpisodeBundle episode_bundle(std::string_view name, const ManifestText& manifest) noexcept;

}  // namespace oomrec::bundle
