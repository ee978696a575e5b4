// What of each bundle has arrived in the store: the file `.shipped` in the dump directory, which is
// the spool.
//
// One line for each thing that arrived, in the order of arrival. A process that dies after it has
// put an object and before it has added the line puts the object once more, which changes nothing.
// The plan has a line before the row is put: the row names the archive, which is to follow whoever
// ships next, and whatever the bounds of the day are by then.
// Retention reads the last of a bundle's lines, "NAME shipped" (common/bundle/retention.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace oomrec::tools::service {

inline constexpr std::string_view kNoRaw = "-";

// What is to be shipped of a bundle, and under which names. It is made once.
struct Plan {
  std::string day;          // of the death, "2026-11-30"
  std::string stem;         // of its objects' names
  std::string raw{kNoRaw};  // the suffix of the archive, such as "tar.zst"; kNoRaw: there is none
  std::string signature;    // percent-encoded

  bool has_raw() const { return raw != kNoRaw; }
  std::string raw_key() const;  // "raw/day=2026-11-30/STEM.tar.zst"
};

struct Arrived {
  std::optional<Plan> plan;
  bool row = false;        // any
  bool final_row = false;  // the row that says how the process ended
  bool raw = false;        // or it is too large for the store
  std::uint64_t raw_bytes = 0;
  bool unreadable = false;  // nothing can be shipped

  bool awaits_raw() const { return row && plan->has_raw() && !raw; }
};

class Ledger {
 public:
  explicit Ledger(std::filesystem::path directory);

  const Arrived& of(const std::string& bundle) const;
  const std::map<std::string, Arrived>& bundles() const { return bundles_; }

  // Makes the dump directory the spool, until a week has passed without a line or a call: retention
  // keeps what has not arrived (common/bundle/retention.h).
  void begin() const;

  // Each adds a line, and waits until it is on the disk. False on error, with a remark.
  bool add_row(const std::string& bundle, const Plan& plan, bool is_final);
  bool add_raw(const std::string& bundle, std::uint64_t bytes);  // 0: it is too large
  bool add_unreadable(const std::string& bundle);
  // Likewise. Returns the plan that holds: another process may have made one before.
  std::optional<Plan> add_plan(const std::string& bundle, const Plan& plan);

 private:
  void read();
  void apply(std::string_view line);
  bool add(const std::string& lines);
  bool is_kept(const std::string& bundle, const Arrived& arrived) const;
  std::string compacted() const;

  const std::filesystem::path directory_;
  std::map<std::string, Arrived> bundles_;
  std::size_t lines_ = 0;
};

}  // namespace oomrec::tools::service
