#include "tools/formats/pytorch/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace oomrec::tools::formats {
namespace {

// The names are Python's (Lib/pickle.py).
enum Opcode : std::uint8_t {
  MARK = '(',
  STOP = '.',
  NONE = 'N',
  BININT = 'J',
  BININT1 = 'K',
  BININT2 = 'M',
  BINFLOAT = 'G',
  BINUNICODE = 'X',
  BINBYTES = 'B',
  SHORT_BINBYTES = 'C',
  EMPTY_LIST = ']',
  APPEND = 'a',
  APPENDS = 'e',
  EMPTY_DICT = '}',
  SETITEM = 's',
  SETITEMS = 'u',
  EMPTY_TUPLE = ')',
  TUPLE = 't',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  BINGET = 'h',
  LONG_BINGET = 'j',
  PROTO = 0x80,
  TUPLE1 = 0x85,
  TUPLE2 = 0x86,
  TUPLE3 = 0x87,
  NEWTRUE = 0x88,
  NEWFALSE = 0x89,
  LONG1 = 0x8a,
  LONG4 = 0x8b,
  SHORT_BINUNICODE = 0x8c,
  BINUNICODE8 = 0x8d,
  BINBYTES8 = 0x8e,
  MEMOIZE = 0x94,
  FRAME = 0x95,
};

constexpr unsigned kHighestProtocol = 5;

// Two's complement, little-endian. A number that needs more than 64 bits is clamped.
std::int64_t number_of(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const bool negative = (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i >= sizeof value && byte != (negative ? 0xff : 0))
      return negative ? std::numeric_limits<std::int64_t>::min()
                      : std::numeric_limits<std::int64_t>::max();
    value = value << 8 | byte;
  }
  const auto number = static_cast<std::int64_t>(value);
  if (!negative && number < 0) return std::numeric_limits<std::int64_t>::max();
  return number;
}

}  // namespace

// Interprets the opcodes with a stack of values.
class Pickle::Machine {
 public:
  Machine(Pickle& pickle, std::string_view file) : pickle_(pickle), file_(file) {}

  void run() {
    if (byte() != PROTO || byte() > kHighestProtocol) fail("it does not begin like a pickle");
    for (std::uint8_t opcode = byte(); opcode != STOP; opcode = byte()) step(opcode);
    pickle_.root_ = pop();
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw PickleError{fmt::format("{} (at byte {})", why, at_)};
  }

  std::string_view take(std::uint64_t bytes) {
    if (bytes > file_.size() - at_) fail("it is cut short");
    const std::string_view taken = file_.substr(at_, bytes);
    at_ += bytes;
    return taken;
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)[0]); }
  std::uint64_t length(std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, take(bytes).data(), bytes);
    return value;
  }

  void step(std::uint8_t opcode) {
    switch (opcode) {
      case FRAME:
        take(sizeof(std::uint64_t));
        return;
      case MARK:
        return grow(marks_, stack_.size());
      case NONE:
        return push({});
      case NEWTRUE:
      case NEWFALSE:
        return push_number(opcode == NEWTRUE, Kind::boolean);
      case BININT1:
        return push_number(byte());
      case BININT2:
        return push_number(static_cast<std::int64_t>(length(2)));
      case BININT:
        return push_number(static_cast<std::int32_t>(length(4)));
      case LONG1:
        return push_number(number_of(take(byte())));
      case LONG4:
        return push_number(number_of(take(length(4))));
      case BINFLOAT:
        return push_real();
      case SHORT_BINUNICODE:
      case SHORT_BINBYTES:
        return push_text(take(byte()));
      case BINUNICODE:
      case BINBYTES:
        return push_text(take(length(4)));
      case BINUNICODE8:
      case BINBYTES8:
        return push_text(take(length(8)));
      case EMPTY_LIST:
      case EMPTY_TUPLE:
        return push_container(Kind::list, {});
      case EMPTY_DICT:
        return push_container(Kind::dict, {});
      case TUPLE1:
      case TUPLE2:
      case TUPLE3:
        return push_container(Kind::list, top(opcode - TUPLE1 + 1u));
      case TUPLE: {
        std::vector<Value> items = since_mark();
        return push_container(Kind::list, std::move(items));
      }
      case APPEND:
        return add(Kind::list, top(1));
      case APPENDS:
        return add(Kind::list, since_mark());
      case SETITEM:
        return add(Kind::dict, top(2));
      case SETITEMS:
        return add(Kind::dict, since_mark());
      default:
        return step_memo(opcode);
    }
  }

  void step_memo(std::uint8_t opcode) {
    switch (opcode) {
      case MEMOIZE:
        return put(memo_.size());
      case BINPUT:
        return put(byte());
      case LONG_BINPUT:
        return put(length(4));
      case BINGET:
        return get(byte());
      case LONG_BINGET:
        return get(length(4));
      default:
        fail(fmt::format("opcode {:#04x} builds an object, which oomrec does not do", opcode));
    }
  }

  // Adds an element, and takes what the vector grows by from the budget first.
  template <typename Element>
  void grow(std::vector<Element>& elements, const Element& element) {
    if (elements.size() == elements.capacity()) reserve(elements, elements.size() + 1);
    elements.push_back(element);
  }
  template <typename Element>
  void reserve(std::vector<Element>& elements, std::size_t count) {
    if (count <= elements.capacity()) return;
    count = std::max(count, elements.capacity() + elements.capacity() / 2);
    take_memory((count - elements.capacity()) * sizeof(Element));
    elements.reserve(count);
  }
  void take_memory(std::uint64_t bytes) {
    used_ += bytes;
    if (used_ > kMostBytes) fail("its values need more than 768 MiB of memory");
  }

  void push(const Value& value) { grow(stack_, value); }
  void push_number(std::int64_t number, Kind kind = Kind::number) {
    Value value;
    value.kind_ = kind;
    value.number_ = number;
    push(value);
  }
  void push_real() {
    std::uint64_t bits = __builtin_bswap64(length(8));  // big-endian
    Value value;
    value.kind_ = Kind::real;
    std::memcpy(&value.real_, &bits, sizeof bits);
    push(value);
  }
  void push_text(std::string_view text) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) fail("a text is too long");
    Value value;
    value.kind_ = Kind::text;
    value.length_ = static_cast<std::uint32_t>(text.size());
    value.text_ = text.data();
    push(value);
  }
  void push_container(Kind kind, std::vector<Value> items) {
    if (!items.empty()) take_memory(items.capacity() * sizeof(Value) + kAllocationBytes);
    Value value;
    value.kind_ = kind;
    value.container_ = pickle_.containers_.size();
    add_container(std::move(items));
    push(value);
  }

  void add_container(std::vector<Value> items) {
    std::vector<std::vector<Value>>& all = pickle_.containers_;
    if (all.size() == all.capacity()) reserve(all, all.size() + 1);
    all.push_back(std::move(items));
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Value pop() {
    if (stack_.size() <= floor()) fail("it pops an empty stack");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }

  // Pops the last `count` values.
  std::vector<Value> top(std::size_t count) {
    if (stack_.size() - floor() < count) fail("it pops an empty stack");
    std::vector<Value> items{stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end()};
    stack_.resize(stack_.size() - count);
    return items;
  }
  std::vector<Value> since_mark() {
    if (marks_.empty()) fail("it refers to a missing mark");
    std::vector<Value> items = top(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  void add(Kind kind, const std::vector<Value>& items) {
    const bool has_container = stack_.size() > floor() && stack_.back().is(kind);
    if (!has_container) fail("it adds items to a value that is not a container");
    if (kind == Kind::dict && items.size() % 2 != 0) fail("a key has no value");
    std::vector<Value>& to = pickle_.containers_[stack_.back().container_];
    reserve(to, to.size() + items.size());
    to.insert(to.end(), items.begin(), items.end());
  }

  // Python numbers the entries of its memo consecutively.
  void put(std::uint64_t number) {
    if (stack_.size() <= floor() || number > memo_.size()) fail("it stores an invalid memo");
    if (number == memo_.size()) grow(memo_, Value{});
    memo_[number] = stack_.back();
  }
  void get(std::uint64_t number) {
    if (number >= memo_.size()) fail("it refers to a missing memo");
    push(memo_[number]);
  }

  Pickle& pickle_;
  const std::string_view file_;
  std::uint64_t at_ = 0;
  static constexpr std::uint64_t kAllocationBytes = 16;
  std::uint64_t used_ = 0;  // bytes of all vectors
  std::vector<Value> stack_, memo_;
  std::vector<std::size_t> marks_;  // heights of the stack
};

Pickle::Pickle(std::string_view file) { Machine{*this, file}.run(); }

std::span<const Pickle::Value> Pickle::items(const Value& list) const {
  if (!list.is(Kind::list)) return {};
  return containers_[list.container_];
}

std::int64_t Pickle::number(const Value& value) const {
  return value.is(Kind::number) || value.is(Kind::boolean) ? value.number_ : 0;
}

std::string_view Pickle::text(const Value& value) const {
  if (!value.is(Kind::text)) return {};
  return {value.text_, value.length_};
}

const Pickle::Value& Pickle::member(const Value& dict, std::string_view key) const {
  static const Value kNone{};
  if (!dict.is(Kind::dict)) return kNone;
  const std::vector<Value>& entries = containers_[dict.container_];
  for (std::size_t i = entries.size(); i >= 2; i -= 2) {
    if (++comparisons_ > kMostComparisons) throw PickleError{"its dicts are too large"};
    if (text(entries[i - 2]) == key && entries[i - 2].is(Kind::text)) return entries[i - 1];
  }
  return kNone;
}

}  // namespace oomrec::tools::formats
