#include "tools/print/cgroup_account.h"

#include <fmt/format.h>

#include <span>

#include "common/session/account_fields.h"
#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

using session::CgroupAccount;

// From the evidence that was just collected, else from the recording.
const CgroupAccount& account_of(const bundles::Source& source) {
  const bool examined_now = source.ending && source.ending->killed;
  return examined_now ? source.ending->evidence.account : source.recording->header().account;
}

void add_fields(Json& json, const CgroupAccount& account,
                std::span<const session::AccountField> fields) {
  for (const session::AccountField& field : fields)
    json[std::string{field.key}] = account.*field.bytes;
}

Json largest_json(const CgroupAccount& account) {
  if (account.largest_pid == 0) return nullptr;
  return {{"pid", account.largest_pid},
          {"name", text_or_null(printable(session::largest_name_of(account)))},
          {"rss_bytes", account.largest_bytes},
          {"recorded", account.largest_recorded != 0}};
}

// In the order of kAccountParts.
constexpr std::string_view kPartNames[] = {
    "recorded processes",
    "processes without a recording",
    "shared memory, tmpfs",
    "page cache",
    "slab",
    "other kernel memory",
    "the rest",
};
static_assert(std::size(kPartNames) == std::size(session::kAccountParts));

}  // namespace

Json cgroup_account_json(const bundles::Source& source) {
  const CgroupAccount& account = account_of(source);
  if (!session::has_account(account)) return nullptr;
  Json json = {{"source", session::source_of(account)}, {"scope", session::scope_of(account)}};
  add_fields(json, account, session::kAccountTotals);
  add_fields(json, account, session::kAccountParts);
  Json process = Json::object();
  add_fields(process, account, session::kAccountOfProcess);
  json["process"] = process;
  json["largest_other"] = largest_json(account);
  return json;
}

std::string cgroup_account_text(const bundles::Source& source) {
  const CgroupAccount& account = account_of(source);
  if (!session::has_account(account)) return {};
  std::string text;
  for (std::size_t i = 0; i < std::size(kPartNames); ++i) {
    const std::uint64_t bytes = account.*session::kAccountParts[i].bytes;
    if (bytes == 0) continue;
    text += fmt::format("  {:>10}  {}\n", size_text(bytes), kPartNames[i]);
  }
  text += fmt::format("  {:>10}  in use, of {}\n", size_text(account.usage_bytes),
                      size_text(account.limit_bytes));
  if (account.largest_pid != 0)
    text +=
        fmt::format("  the largest other process: {} ({}), {} resident\n", account.largest_pid,
                    printable(session::largest_name_of(account)), size_text(account.largest_bytes));
  return text;
}

}  // namespace oomrec::tools::print
