// The fields of a telemetry event, their rules, and their names in version 1.
//
// They are defined in tools/python/oomrec/gpumemprof/telemetry_fields.json, by which the Python
// package checks the events that a program makes. This file implements the vocabulary of that
// table, such as "integer or null".
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

// Why a record is rejected. `reason` is one word.
class TelemetryProblem : public std::invalid_argument {
 public:
  TelemetryProblem(std::string reason, const std::string& message)
      : std::invalid_argument(message), reason_(std::move(reason)) {}

  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

// "mebibytes or zero": how to read a value, and which values count as missing.
struct TelemetryKind {
  std::string base;  // "integer", "bytes", "mebibytes", "seconds", "device", "text", …
  std::string
      otherwise;  // "null": null is a valid value; "nothing", "zero": such a value is missing

  bool is_text() const { return base == "text" || base == "any text"; }
};

struct TelemetryField {
  using Names = std::vector<std::pair<std::string, TelemetryKind>>;

  std::string key;
  TelemetryKind kind;
  bool optional = false;
  std::optional<std::int64_t> least;  // of an integer
  // For version 1: names to try in this order, then names in its metadata, then the defaults.
  Names version_1, in_metadata;
  Json default_value, default_beside;
  std::string default_as;                       // key of the field to copy
  std::vector<std::string> default_difference;  // keys of the fields to subtract
};

struct TelemetryFields {
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  // of indices

  std::int64_t version = 0;
  Json later_versions;  // by number, as text: those that are read as `version`
  std::vector<TelemetryField> fields;
  std::map<std::string, std::size_t, std::less<>> by_key;  // index in `fields`
  Pairs at_most, less_than;                                // the first must be ≤ or < the second
  Json devices, collectors, notes;
  std::set<std::string, std::less<>> text_columns;  // cells in them are texts, even "17"

  std::optional<std::size_t> find(std::string_view key) const;  // its index
};

const TelemetryFields& telemetry_fields();

inline constexpr std::string_view kVersionKey = "schema_version";

// Whether it fits in a signed 64-bit integer.
bool is_integer(const Json& value);
bool is_blank(std::string_view text);  // only ASCII white space

// The values of a record of version 2, in the order of the table; nullptr: a missing optional one.
// Throws TelemetryProblem if the record breaks a rule of the table.
std::vector<const Json*> checked_values(const Json& record);
void check_version(const Json& version);

}  // namespace oomrec::tools::formats
