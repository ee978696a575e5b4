// What the account of the cgroup says: what its memory was used for, and why the recorder's holders
// may explain little of it.
#include <algorithm>
#include <array>

#include "common/facts/account.h"
#include "common/text/text.h"
#include "common/verdict/death_facts.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

using session::CgroupAccount;

struct Part {
  std::string_view name;
  std::uint64_t bytes;
};

// The parts of an account, by their names.
struct Parts {
  std::array<Part, 7> rows;
  std::size_t count = 0;
  void field(std::string_view, std::uint64_t bytes, std::string_view name) noexcept {
    rows[count++] = {name, bytes};
  }
};

// Writes the parts, largest first, without those below 1 % of the usage.
void add_parts(text::Text& line, const CgroupAccount& account) noexcept {
  Parts parts;
  facts::Section<CgroupAccount>::describe_parts(parts, account);
  std::sort(parts.rows.begin(), parts.rows.end(),
            [](const Part& one, const Part& other) { return one.bytes > other.bytes; });
  bool first = true;
  for (const Part& part : parts.rows) {
    if (part.bytes == 0 || part.bytes < account.usage_bytes / 100) continue;
    line.add(first ? ": " : ", ").size(part.bytes).add(' ').add(part.name);
    first = false;
  }
}

void add_usage(Verdict& verdict, const CgroupAccount& account) noexcept {
  const bool machine =
      static_cast<session::AccountScope>(account.scope) == session::AccountScope::machine;
  add_line(verdict, [&](text::Text& line) {
    line.add(machine ? "the machine" : "its cgroup");
    line.add(account.is_at_kill()       ? " at the kill, by the kernel's report: "
             : account.is_own_at_kill() ? " after its end, and itself at the kill: "
                                        : " after its end, and itself before: ");
    line.size(account.usage_bytes).add(" of ").size(account.limit_bytes).add(" in use");
    add_parts(line, account);
  });
}

// Resident memory that no recorded block explains.
void add_unexplained(Verdict& verdict, const DeathFacts& facts) noexcept {
  const CgroupAccount& account = facts.account;
  if (!is_mostly_unrecorded(facts)) return;
  const std::uint64_t recorded = facts.usage.held;
  add_line(verdict, [&](text::Text& line) {
    line.add("of its ").size(account.own_bytes()).add(" resident, recorded blocks are ");
    line.size(std::min(recorded, account.own_bytes()));
    constexpr std::uint64_t kSmall = std::uint64_t{1} << 20;
    if (account.own_shared_bytes >= kSmall)
      line.add("; ").size(account.own_shared_bytes).add(" are shared memory (memfd, tmpfs)");
    if (account.own_file_bytes >= kSmall)
      line.add("; ").size(account.own_file_bytes).add(" are mapped files");
    if (account.own_anonymous_bytes >= recorded + kSmall)
      line.add("; ")
          .size(account.own_anonymous_bytes - recorded)
          .add(
              " are private memory that was not recorded (stacks, data of modules, raw mappings, "
              "what allocators keep free, reservations and file mappings in use, memory from "
              "before a fork)");
  });
}

void add_neighbour(Verdict& verdict, const CgroupAccount& account) noexcept {
  if (account.largest_pid == 0 || account.largest_bytes < account.own_bytes()) return;
  add_line(verdict, [&](text::Text& line) {
    line.add("a larger process there: ").signed_number(account.largest_pid).add(" (");
    line.add(facts::Name{account.largest_name}.view()).add("), ").size(account.largest_bytes);
    line.add(" resident").add(account.largest_recorded != 0 ? ", recorded" : ", not recorded");
  });
}

}  // namespace

bool is_mostly_unrecorded(const DeathFacts& facts) noexcept {
  const CgroupAccount& account = facts.account;
  return account.is_own_at_kill() && facts.usage.held < account.own_bytes() / 2;
}

void add_resident(text::Text& summary, const DeathFacts& facts) noexcept {
  summary.add("; it held ").size(facts.usage.held);
  summary.add(" of ").size(facts.account.own_bytes()).add(" resident");
}

void add_account(Verdict& verdict, const DeathFacts& facts) noexcept {
  if (facts.account.usage_bytes != 0) add_usage(verdict, facts.account);
  add_unexplained(verdict, facts);
  add_neighbour(verdict, facts.account);
}

}  // namespace oomrec::verdict
