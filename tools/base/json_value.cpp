#include "tools/base/json_value.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace oomrec::tools {
namespace {

const Json& null() {
  static const Json value;
  return value;
}

[[noreturn]] void throw_wrong_type() { throw std::domain_error{"a JSON value of another type"}; }

}  // namespace

Json::Json(std::string text)
    : type_(Type::string), payload_{.text = new std::string{std::move(text)}} {}
Json::Json(std::string_view text) : Json(std::string{text}) {}
Json::Json(const char* text) : Json(std::string{text}) {}

Json::Json(std::initializer_list<Json> elements) {
  const bool members = std::ranges::all_of(elements, [](const Json& element) {
    return element.is_array() && element.size() == 2 && element[0].is_string();
  });
  if (!members) {
    *this = array(elements);
    return;
  }
  become(Type::object);
  payload_.object->reserve(elements.size());
  for (const Json& element : elements) {
    Json pair = element.taken();
    (*this)[pair[0].text()] = std::move(pair[1]);
  }
}

Json::Json(const Json& other) : type_(other.type_), payload_(other.payload_) {
  if (type_ == Type::string) payload_.text = new std::string{*other.payload_.text};
  if (type_ == Type::array) payload_.array = new Array(*other.payload_.array);
  if (type_ == Type::object) payload_.object = new Object(*other.payload_.object);
}

Json::Json(Json&& other) noexcept : type_(other.type_), payload_(other.payload_) {
  other.type_ = Type::null;
}

Json& Json::operator=(Json other) noexcept {
  std::swap(type_, other.type_);
  std::swap(payload_, other.payload_);
  return *this;
}

Json::~Json() {
  if (type_ == Type::string) delete payload_.text;
  if (type_ == Type::array) delete payload_.array;
  if (type_ == Type::object) delete payload_.object;
}

// Moves the value out of an initializer list. Its elements are const, but have no other owner.
Json Json::taken() const noexcept {
  Json value;
  value.type_ = std::exchange(type_, Type::null);
  value.payload_ = payload_;
  return value;
}

Json Json::discarded() {
  Json value;
  value.type_ = Type::discarded;
  return value;
}

Json Json::array() { return array({}); }
Json Json::array(std::initializer_list<Json> elements) {
  Json value;
  value.become(Type::array);
  value.payload_.array->reserve(elements.size());
  for (const Json& element : elements) value.payload_.array->push_back(element.taken());
  return value;
}

Json Json::object() {
  Json value;
  value.become(Type::object);
  return value;
}

// Turns null into a container; keeps a value that already has the type.
void Json::become(Type type) {
  if (type_ == type) return;
  if (type_ != Type::null) throw_wrong_type();
  if (type == Type::array)
    payload_.array = new Array;
  else
    payload_.object = new Object;
  type_ = type;
}

const std::string& Json::text() const {
  if (type_ != Type::string) throw_wrong_type();
  return *payload_.text;
}

bool Json::boolean() const {
  if (type_ != Type::boolean) throw_wrong_type();
  return payload_.boolean;
}

template <typename Number>
Number Json::number() const {
  switch (type_) {
    case Type::boolean:
      return static_cast<Number>(payload_.boolean);
    case Type::number_integer:
      return static_cast<Number>(payload_.integer);
    case Type::number_unsigned:
      return static_cast<Number>(payload_.unsigned_integer);
    case Type::number_float:
      return static_cast<Number>(payload_.number);
    default:
      throw_wrong_type();
  }
}
template double Json::number() const;
template std::int64_t Json::number() const;
template std::uint64_t Json::number() const;

std::size_t Json::size() const noexcept {
  if (type_ == Type::array) return payload_.array->size();
  if (type_ == Type::object) return payload_.object->size();
  return type_ == Type::null ? 0 : 1;
}

const Json::Object& Json::items() const noexcept {
  static const Object none;
  return type_ == Type::object ? *payload_.object : none;
}

Json::Object& Json::items() noexcept { return const_cast<Object&>(std::as_const(*this).items()); }

Json& Json::operator[](std::string_view key) {
  become(Type::object);
  for (Member& member : *payload_.object)
    if (member.key == key) return member.value;
  payload_.object->push_back({std::string{key}, nullptr});
  return payload_.object->back().value;
}

const Json& Json::operator[](std::string_view key) const noexcept {
  for (const Member& member : items())
    if (member.key == key) return member.value;
  return null();
}

const Json& Json::at(std::string_view key) const {
  for (const Member& member : items())
    if (member.key == key) return member.value;
  throw std::out_of_range{"no member " + std::string{key}};
}

bool Json::contains(std::string_view key) const noexcept {
  return std::ranges::any_of(items(), [key](const Member& member) { return member.key == key; });
}

void Json::erase(std::string_view key) {
  become(Type::object);
  std::erase_if(*payload_.object, [key](const Member& member) { return member.key == key; });
}

void Json::update(const Json& members) {
  for (const Member& member : members.items()) (*this)[member.key] = member.value;
}

void Json::push_back(Json value) {
  become(Type::array);
  payload_.array->push_back(std::move(value));
}

const Json& Json::element(std::size_t index) const noexcept {
  return is_array() && index < payload_.array->size() ? (*payload_.array)[index] : null();
}

const Json* Json::begin() const noexcept {
  return type_ == Type::array ? payload_.array->data() : nullptr;
}
const Json* Json::end() const noexcept {
  return type_ == Type::array ? payload_.array->data() + payload_.array->size() : nullptr;
}
Json* Json::begin() noexcept { return const_cast<Json*>(std::as_const(*this).begin()); }
Json* Json::end() noexcept { return const_cast<Json*>(std::as_const(*this).end()); }

bool Json::operator==(const Json& other) const noexcept {
  if (is_number() && other.is_number() && type_ != other.type_) {
    if (type_ == Type::number_float || other.type_ == Type::number_float)
      return get<double>() == other.get<double>();
    const Json& number = type_ == Type::number_integer ? *this : other;
    return number.payload_.integer >= 0 && get<std::uint64_t>() == other.get<std::uint64_t>();
  }
  if (type_ != other.type_) return false;
  switch (type_) {
    case Type::discarded:
      return false;
    case Type::null:
      return true;
    case Type::boolean:
      return payload_.boolean == other.payload_.boolean;
    case Type::number_integer:
      return payload_.integer == other.payload_.integer;
    case Type::number_unsigned:
      return payload_.unsigned_integer == other.payload_.unsigned_integer;
    case Type::number_float:
      return payload_.number == other.payload_.number;
    case Type::string:
      return *payload_.text == *other.payload_.text;
    case Type::array:
      return *payload_.array == *other.payload_.array;
    case Type::object:
      return *payload_.object == *other.payload_.object;
  }
  return false;
}

}  // namespace oomrec::tools
