// Reads Python pickles of plain values: None, booleans, numbers, texts, bytes, lists, tuples and
// dicts, in protocols 2 to 5.
//
// A pickle is a program, and may come from an attacker. None of it is executed: an opcode that
// would import, call or build an object is an error. So is a file that is truncated, malformed, or
// larger than the bounds below. Values may contain each other in cycles: callers must limit their
// depth.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace oomrec::tools::formats {

class PickleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Pickle {
 public:
  enum class Kind : std::uint8_t { none, boolean, number, real, text, list, dict };

  // Tuples are lists, too. Texts are arbitrary bytes, and point into the file.
  class Value {
   public:
    Kind kind() const { return kind_; }
    bool is(Kind kind) const { return kind_ == kind; }

   private:
    friend class Pickle;
    Kind kind_ = Kind::none;
    std::uint32_t length_ = 0;  // of a text
    union {
      std::int64_t number_ = 0;
      double real_;
      const char* text_;
      std::uint64_t container_;  // in containers_
    };
  };

  static constexpr std::uint64_t kMostBytes = std::uint64_t{768} << 20;      // of values in memory
  static constexpr std::uint64_t kMostComparisons = std::uint64_t{1} << 30;  // of keys

  // Throws PickleError. `file` must outlive this and its values.
  explicit Pickle(std::string_view file);

  const Value& root() const { return root_; }

  // For a value of another kind they return an empty span, 0 or "".
  std::span<const Value> items(const Value& list) const;
  std::int64_t number(const Value&) const;
  std::string_view text(const Value&) const;
  // Identifies a list or dict: equal if both values are the same object.
  std::uint64_t identity(const Value& container) const { return container.container_; }
  // The value of a key, the last one if it is repeated; a value of kind `none` if it is missing.
  // Throws PickleError after kMostComparisons: a dict may have millions of keys.
  const Value& member(const Value& dict, std::string_view key) const;

 private:
  class Machine;

  std::vector<std::vector<Value>> containers_;  // of a dict: alternating keys and values
  Value root_;
  mutable std::uint64_t comparisons_ = 0;
};

}  // namespace oomrec::tools::formats
