// "limit" and "limit_reserve" of metadata.json.
#pragma once

#include "common/facts/describe.h"
#include "common/session/layout.h"
#include "common/session/vocabulary.h"

namespace oomrec::facts {

// The limit that failed a request, or would fail the next one; of tasks and mappings, numbers.
struct Limit {
  LimitKind kind = LimitKind::none;
  std::uint64_t bytes = 0;
  std::uint64_t used_bytes = 0;

  bool is_in_bytes() const noexcept { return kind != LimitKind::none && !is_count_limit(kind); }
};

template <>
struct Section<Limit> {
  static constexpr std::string_view key = "limit";
  static constexpr std::string_view meaning =
      "the limit that failed the request, or would fail the next one";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& limit) {
    v.field("kind", named(limit.kind, kLimitKindNames),
            "`soft` is `--limit`, `none` no limit that is known; of tasks and mappings "
            "`rlimit_nproc` to `max_map_count`, of locked memory `memlock`, of huge pages "
            "`hugetlb`");
    v.field("bytes", known_if(limit.is_in_bytes(), limit.bytes),
            "its size; `null` for `none`, and for tasks and mappings, whose figures are in the "
            "evidence");
    v.field("used", known_if(limit.is_in_bytes(), limit.used_bytes),
            "what of it was in use; `null` likewise");
  }
};

template <>
struct Section<session::LimitReserve> {
  static constexpr std::string_view key = "limit_reserve";
  static constexpr std::string_view meaning =
      "what small requests may use beyond `--limit` after a refusal; `null` without `--limit`";
  static constexpr JsonLayout layout = JsonLayout::one_line;
  static bool is_known(const session::LimitReserve& reserve) noexcept { return reserve.has_limit; }

  static void describe(auto& v, auto& reserve) {
    v.field("bytes", reserve.bytes, "its size");
    v.field("used", reserve.used_bytes, "the most of it that was in use");
  }
};

}  // namespace oomrec::facts
