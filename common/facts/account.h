// "cgroup_account" of metadata.json: the memory of the whole cgroup, or of the machine, at the
// kill.
#pragma once

#include <array>

#include "common/facts/describe.h"
#include "common/session/evidence.h"

namespace oomrec::facts {

inline constexpr auto kAccountSources =
    std::to_array<std::string_view>({"", "kernel_log", "memory_stat", "kill_line"});
inline constexpr auto kAccountScopes = std::to_array<std::string_view>({"cgroup", "machine"});

template <>
struct Section<session::CgroupAccount> {
  static constexpr std::string_view key = "cgroup_account";
  static constexpr std::string_view meaning =
      "the memory of the whole cgroup, or of the machine, when the kernel killed a process there; "
      "else `null`";
  static constexpr JsonLayout layout = JsonLayout::lines;
  static bool is_known(const session::CgroupAccount& account) noexcept {
    return account.usage_bytes != 0;
  }

  static void describe(auto& v, auto& account) {
    v.field("source", named(account.source, kAccountSources),
            "where the figures come from: the kernel's report of the kill, memory.stat after it, "
            "or the kernel's line about the kill");
    v.field("scope", named(account.scope, kAccountScopes), "whose memory was full");
    v.field("limit_bytes", account.limit_bytes, "of the cgroup; the machine's RAM");
    v.field("usage_bytes", account.usage_bytes, "in use: the sum of the next seven");
    describe_parts(v, account);
    v.object("process", JsonLayout::one_line, "resident memory of this process", [&](auto& own) {
      own.field("anonymous_bytes", account.own_anonymous_bytes, "private memory");
      own.field("file_bytes", account.own_file_bytes, "mapped files");
      own.field("shared_bytes", account.own_shared_bytes, "shared memory");
    });
    v.object_or_null("largest_other", account.largest_pid != 0, JsonLayout::one_line,
                     "the other process with the most resident memory", [&](auto& other) {
                       other.field("pid", account.largest_pid, "as its source numbers it");
                       other.field("name", Name{account.largest_name}, "of the program");
                       other.field("rss_bytes", account.largest_bytes, "its resident memory");
                       other.field("recorded", Flag{account.largest_recorded},
                                   "whether oomrec records it, too");
                     });
  }

  // They add up to the usage; their meanings are the words of pages and verdicts.
  static void describe_parts(auto& v, auto& account) {
    v.field("recorded_bytes", account.recorded_bytes, "recorded processes");
    v.field("unrecorded_bytes", account.unrecorded_bytes, "processes without a recording");
    v.field("shared_bytes", account.shared_bytes, "shared memory and tmpfs");
    v.field("file_bytes", account.file_bytes, "page cache");
    v.field("slab_bytes", account.slab_bytes, "slab");
    v.field("kernel_bytes", account.kernel_bytes, "other kernel memory");
    v.field("other_bytes", account.other_bytes, "the rest");
  }
};

}  // namespace oomrec::facts
