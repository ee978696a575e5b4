// "cgroup_account" of metadata.json: the memory of the whole cgroup at the kill.
#include "common/bundle/files.h"
#include "common/session/account_fields.h"

namespace oomrec::bundle {
namespace {

void write_fields(text::JsonWriter& json, const session::CgroupAccount& account,
                  std::span<const session::AccountField> fields) noexcept {
  for (const session::AccountField& field : fields)
    json.key(field.key).number(account.*field.bytes);
}

}  // namespace

void write_account(text::JsonWriter& json, const session::CgroupAccount& account) noexcept {
  if (!session::has_account(account)) return json.null();
  json.begin_object();
  json.key("source").string(session::source_of(account));
  json.key("scope").string(session::scope_of(account));
  write_fields(json, account, session::kAccountTotals);
  write_fields(json, account, session::kAccountParts);
  json.key("process").begin_object(text::JsonLayout::one_line);
  write_fields(json, account, session::kAccountOfProcess);
  json.end_object();
  json.key("largest_other");
  if (account.largest_pid == 0) {
    json.null();
  } else {
    json.begin_object(text::JsonLayout::one_line);
    json.key("pid").signed_number(account.largest_pid);
    json.key("name").string_or_null(session::largest_name_of(account));
    json.key("rss_bytes").number(account.largest_bytes);
    json.key("recorded").boolean(account.largest_recorded != 0);
    json.end_object();
  }
  json.end_object();
}

}  // namespace oomrec::bundle
