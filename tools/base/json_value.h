// A JSON value, to print or from a file.
//
// Half of the files in tools/ use JSON. Each one instantiated nlohmann's basic_json, which took
// longer than the rest of its compilation (docs/decisions/17-compile-time.md). This class has the
// same interface without templates; nlohmann still parses the text, for parse_json()
// (JsonBudget).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace oomrec::tools {

class Json {
 public:
  enum class Type : std::uint8_t {
    discarded,  // the text was not JSON
    null,
    boolean,
    number_integer,
    number_unsigned,
    number_float,
    string,
    array,
    object,
  };
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // in the order of insertion

  Json(std::nullptr_t = nullptr) noexcept {}
  Json(std::same_as<bool> auto value) noexcept : type_(Type::boolean), payload_{.boolean = value} {}
  Json(std::signed_integral auto number) noexcept
      : type_(Type::number_integer), payload_{.integer = number} {}
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) Json(Number number)
  noexcept : type_(Type::number_unsigned), payload_{.unsigned_integer = number} {}
  Json(double number) noexcept : type_(Type::number_float), payload_{.number = number} {}
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  template <typename Value>
  Json(const std::optional<Value>& value) : Json(value ? Json(*value) : Json()) {}
  // An object if every element is a pair of a text and a value, else an array.
  Json(std::initializer_list<Json> elements);
  template <typename Element>
  Json(const std::vector<Element>& elements) : Json(array()) {
    for (const Element& element : elements) push_back(element);
  }
  template <typename Element>
  Json(const std::map<std::string, Element>& members) : Json(object()) {
    for (const auto& [key, value] : members) (*this)[key] = value;
  }

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  static Json discarded();  // the result of parsing a text that is not JSON
  static Json array();
  static Json array(std::initializer_list<Json> elements);
  static Json object();

  // The text, on one line or with `indent` spaces for each level. Invalid UTF-8 is replaced.
  std::string dump(int indent = -1) const;

  Type type() const noexcept { return type_; }
  bool is_discarded() const noexcept { return type_ == Type::discarded; }
  bool is_null() const noexcept { return type_ == Type::null; }
  bool is_boolean() const noexcept { return type_ == Type::boolean; }
  bool is_number() const noexcept { return is_number_integer() || type_ == Type::number_float; }
  bool is_number_integer() const noexcept {
    return type_ == Type::number_integer || is_number_unsigned();
  }
  bool is_number_unsigned() const noexcept { return type_ == Type::number_unsigned; }
  bool is_string() const noexcept { return type_ == Type::string; }
  bool is_array() const noexcept { return type_ == Type::array; }
  bool is_object() const noexcept { return type_ == Type::object; }
  bool is_structured() const noexcept { return is_array() || is_object(); }

  // Numbers convert as in C++. Throws std::domain_error for a value of another type.
  template <typename Value>
  Value get() const {
    if constexpr (std::is_same_v<Value, Json>)
      return *this;
    else if constexpr (std::is_same_v<Value, std::string>)
      return text();
    else if constexpr (std::is_same_v<Value, bool>)
      return boolean();
    else if constexpr (std::is_floating_point_v<Value>)
      return number<double>();
    else if constexpr (std::signed_integral<Value>)
      return static_cast<Value>(number<std::int64_t>());
    else {
      static_assert(std::unsigned_integral<Value>);
      return static_cast<Value>(number<std::uint64_t>());
    }
  }
  const std::string& text() const;

  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }

  // Members of an object. Writing the first member turns a null into an object.
  Json& operator[](std::string_view key);
  const Json& operator[](std::string_view key) const noexcept;  // null if absent
  const Json& at(std::string_view key) const;  // throws std::out_of_range if absent
  bool contains(std::string_view key) const noexcept;
  void erase(std::string_view key);
  void update(const Json& members);
  const Object& items() const noexcept;  // empty if it is not an object
  Object& items() noexcept;

  // Elements of an array. Adding the first element turns a null into an array.
  Json& operator[](std::integral auto index) { return begin()[index]; }
  const Json& operator[](std::integral auto index) const noexcept {  // null if absent
    return element(static_cast<std::size_t>(index));
  }
  Json& back() { return end()[-1]; }
  const Json& back() const { return end()[-1]; }
  void push_back(Json value);
  // Empty if it is not an array.
  const Json* begin() const noexcept;
  const Json* end() const noexcept;
  Json* begin() noexcept;
  Json* end() noexcept;

  bool operator==(const Json& other) const noexcept;

 private:
  union Payload {
    bool boolean;
    std::int64_t integer;
    std::uint64_t unsigned_integer;
    double number;
    std::string* text;
    Array* array;
    Object* object;
  };

  template <typename Number>
  Number number() const;
  bool boolean() const;
  const Json& element(std::size_t index) const noexcept;
  Json taken() const noexcept;
  void become(Type type);

  mutable Type type_ = Type::null;  // mutable: see taken()
  Payload payload_{};
};

struct Json::Member {
  std::string key;
  Json value;
  bool operator==(const Member&) const = default;
};

}  // namespace oomrec::tools
