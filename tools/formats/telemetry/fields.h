// The fields of a telemetry event, their rules, and the names that version 1 had for them.
//
// All of it stands in tools/python/oomrec/gpumemprof/telemetry_fields.json, from which the Python
// package reads the same files. Here are the words of that table: what "integer or null" accepts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::formats {

// Why a record is refused. `reason` is one word, which both readers use.
class TelemetryProblem : public std::invalid_argument {
 public:
  TelemetryProblem(std::string reason, const std::string& message)
      : std::invalid_argument(message), reason_(std::move(reason)) {}

  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

// "mebibytes or zero": how a value is read, and what stands for a name that is not there.
struct TelemetryKind {
  std::string base;       // "integer", "bytes", "mebibytes", "seconds", "device", "text", …
  std::string otherwise;  // "null": null is the value; "nothing", "zero": as if not there

  bool is_text() const { return base == "text" || base == "any text"; }
};

struct TelemetryField {
  using Names = std::vector<std::pair<std::string, TelemetryKind>>;

  std::string key;
  TelemetryKind kind;
  bool optional = false;
  std::optional<std::int64_t> least;  // of an integer
  // Of a record of version 1: names that are tried in this order; then names in its metadata; then
  // what stands there instead.
  Names version_1, in_metadata;
  Json default_value, default_beside;
  std::string default_as;                       // a key
  std::vector<std::string> default_difference;  // two keys
};

struct TelemetryFields {
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  // of indices

  std::int64_t version = 0;
  std::vector<TelemetryField> fields;
  std::map<std::string, std::size_t, std::less<>> by_key;  // of `fields`
  Pairs at_most, less_than;  // the first may not be more than the second; must be less than it
  Json devices, collectors, notes;
  std::set<std::string, std::less<>> text_columns;  // cells that are texts, whatever they look like

  std::optional<std::size_t> find(std::string_view key) const;  // its index
};

const TelemetryFields& telemetry_fields();

inline constexpr std::string_view kVersionKey = "schema_version";

// An integer of 64 bits with a sign.
bool is_integer(const Json& value);
bool is_blank(std::string_view text);  // nothing but ASCII blanks

// The values of a record of version 2, in the order of the table; null: an optional one that is not
// there. Throws TelemetryProblem where it breaks a rule of the table.
std::vector<const Json*> checked_values(const Json& record);
void check_version(const Json& version);

}  // namespace oomrec::tools::formats
