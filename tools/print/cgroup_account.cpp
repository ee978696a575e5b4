#include "tools/print/cgroup_account.h"

#include <fmt/format.h>

#include "common/facts/account.h"
#include "tools/base/json_tree.h"
#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

using session::CgroupAccount;

// From the evidence that was just collected, else from the recording.
const CgroupAccount& account_of(const bundles::Source& source) {
  const bool examined_now = source.ending && source.ending->killed;
  return examined_now ? source.ending->evidence.account : source.recording->header().account;
}

struct PartLines {
  std::string text;
  void field(std::string_view, std::uint64_t bytes, std::string_view name) {
    if (bytes != 0) text += fmt::format("  {:>10}  {}\n", size_text(bytes), name);
  }
};

}  // namespace

Json cgroup_account_json(const bundles::Source& source) { return fact_json(account_of(source)); }

std::string cgroup_account_text(const bundles::Source& source) {
  const CgroupAccount& account = account_of(source);
  if (!facts::Section<CgroupAccount>::is_known(account)) return {};
  PartLines parts;
  facts::Section<CgroupAccount>::describe_parts(parts, account);
  std::string text = parts.text;
  text += fmt::format("  {:>10}  in use, of {}\n", size_text(account.usage_bytes),
                      size_text(account.limit_bytes));
  if (account.largest_pid != 0)
    text += fmt::format("  the largest other process: {} ({}), {} resident\n", account.largest_pid,
                        printable(facts::Name{account.largest_name}.view()),
                        size_text(account.largest_bytes));
  return text;
}

}  // namespace oomrec::tools::print
