// Reads Python's pickles as far as they hold plain values: None, booleans, numbers, texts, bytes,
// lists, tuples and dicts, in protocols 2 to 5.
//
// A pickle is a program, and may come from anybody. Nothing of it is ever run: an opcode that would
// import, call or build an object is refused, and so is what is cut, nests wrongly, or is larger
// than the bounds below. Values may refer to one another in circles: who walks them goes down no
// further than it expects.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
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

  // A list is also a tuple. Texts lie in the file, and are bytes of any kind.
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

  static constexpr std::uint64_t kMostValues = std::uint64_t{1} << 27;
  static constexpr std::uint64_t kMostContainers = std::uint64_t{1} << 25;

  // Throws PickleError. `file` must outlive this and what it gives.
  explicit Pickle(std::string_view file);

  const Value& root() const { return root_; }

  // Of a value of another kind: nothing, 0, "".
  std::span<const Value> items(const Value& list) const;
  std::int64_t number(const Value&) const;
  std::string_view text(const Value&) const;
  // Which list or dict it is: the same number where two values are one and the same.
  std::uint64_t identity(const Value& container) const { return container.container_; }
  // The value of a key; one of kind none where there is none. Of a key twice, the last one.
  const Value& member(const Value& dict, std::string_view key) const;

 private:
  class Machine;

  std::vector<std::vector<Value>> containers_;  // a dict: keys and values in turn
  Value root_;
};

}  // namespace oomrec::tools::formats
