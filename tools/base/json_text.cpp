// The text of JSON: the only parser, and the writer. Both are nlohmann's, into and from our values.
#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "tools/base/json.h"

namespace oomrec::tools {
namespace {

// The largest object whose members are searched one by one.
constexpr std::size_t kFewMembers = 16;
// What an allocation costs beside its bytes.
constexpr std::size_t kAllocationBytes = 16;

std::size_t cost_of(const std::string& text) {
  const bool is_inline = text.size() <= std::string{}.capacity();
  return is_inline ? 0 : text.capacity() + kAllocationBytes;
}

// Keeps each key once: at its first position, with its last value. By sorting, because keys that
// were made to collide would slow down a hash table.
void remove_duplicates(Json::Object& members, JsonBudget& budget) {
  struct Key {
    std::size_t hash, at;
  };
  budget.take(members.size() * sizeof(Key));
  std::vector<Key> keys;
  keys.reserve(members.size());
  for (std::size_t i = 0; i < members.size(); ++i)
    keys.push_back({std::hash<std::string>{}(members[i].key), i});
  const auto is_same = [&](const Key& a, const Key& b) {
    return a.hash == b.hash && members[a.at].key == members[b.at].key;
  };
  std::ranges::sort(keys, [&](const Key& a, const Key& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    const int order = members[a.at].key.compare(members[b.at].key);
    return order != 0 ? order < 0 : a.at < b.at;
  });
  std::vector<bool> repeated(members.size());
  for (std::size_t first = 0, i = 1; i < keys.size(); ++i) {
    if (!is_same(keys[first], keys[i])) {
      first = i;
      continue;
    }
    members[keys[first].at].value = std::move(members[keys[i].at].value);
    repeated[keys[i].at] = true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (repeated[i]) continue;
    if (kept != i) members[kept] = std::move(members[i]);
    ++kept;
  }
  members.resize(kept);
}

// Builds the value from the parser's callbacks.
class Builder : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  Builder(JsonBudget& budget, std::size_t deepest) : budget_(budget), deepest_(deepest) {}

  Json root{nullptr};

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t number) override { return put(number); }
  bool number_unsigned(std::uint64_t number) override { return put(number); }
  bool number_float(double number, const std::string&) override { return put(number); }
  bool string(std::string& text) override {
    budget_.take(sizeof(std::string) + kAllocationBytes + cost_of(text));
    return put(std::move(text));
  }
  bool binary(nlohmann::ordered_json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool key(std::string& text) override {
    key_ = std::move(text);
    return true;
  }
  bool end_object() override {
    Json::Object& members = around_.back()->items();
    if (members.size() > kFewMembers) remove_duplicates(members, budget_);
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json container) {
    if (around_.size() == deepest_) throw std::length_error{"is nested too deep"};
    budget_.take(sizeof(Json::Object) + kAllocationBytes);
    around_.push_back(&place(std::move(container)));
    return true;
  }
  bool close() {
    around_.pop_back();
    return true;
  }
  // The returned reference stays valid until the value is closed: only then does its container
  // grow.
  Json& place(Json value) {
    if (around_.empty()) return root = std::move(value);
    Json& around = *around_.back();
    if (around.is_object()) return member(around.items()) = std::move(value);
    budget_.take(kGrowth * sizeof(Json));
    around.push_back(std::move(value));
    return around.back();
  }

  // The member `key_`, which may have been there before. In a large object it is added once more,
  // until end_object().
  Json& member(Json::Object& members) {
    if (members.size() < kFewMembers)
      for (Json::Member& one : members)
        if (one.key == key_) return one.value;
    budget_.take(kGrowth * sizeof(Json::Member) + cost_of(key_));
    return members.emplace_back(Json::Member{std::move(key_), nullptr}).value;
  }

  static constexpr std::size_t kGrowth = 2;  // a vector has up to twice the capacity it needs

  JsonBudget& budget_;
  std::size_t deepest_;
  std::vector<Json*> around_;  // the outermost first
  std::string key_;
};

template <typename Number>
void write_number(std::string& text, Number number) {
  char digits[32];
  text.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
}

// nlohmann writes the shortest digits of a number, and replaces invalid UTF-8.
void write_by_library(std::string& text, const nlohmann::ordered_json& value) {
  text += value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void write_text(std::string& text, const std::string& value) {
  const bool plain = std::ranges::all_of(
      value, [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
  if (!plain) return write_by_library(text, value);
  text += '"';
  text += value;
  text += '"';
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  std::string text;

  void write(const Json& value) {
    switch (value.type()) {
      case Json::Type::discarded:
        text += "<discarded>";
        break;
      case Json::Type::null:
        text += "null";
        break;
      case Json::Type::boolean:
        text += value.get<bool>() ? "true" : "false";
        break;
      case Json::Type::number_integer:
        write_number(text, value.get<std::int64_t>());
        break;
      case Json::Type::number_unsigned:
        write_number(text, value.get<std::uint64_t>());
        break;
      case Json::Type::number_float:
        write_by_library(text, value.get<double>());
        break;
      case Json::Type::string:
        write_text(text, value.text());
        break;
      case Json::Type::array:
        write_all(
            '[', value, [this](const Json& element) { write(element); }, ']');
        break;
      case Json::Type::object:
        write_all(
            '{', value.items(),
            [this](const Json::Member& member) {
              write_text(text, member.key);
              text += indent_ < 0 ? ":" : ": ";
              write(member.value);
            },
            '}');
        break;
    }
  }

 private:
  void write_all(char open, const auto& parts, auto write_part, char close) {
    text += open;
    ++depth_;
    bool first = true;
    for (const auto& part : parts) {
      if (!first) text += ',';
      first = false;
      break_line();
      write_part(part);
    }
    --depth_;
    if (!first) break_line();
    text += close;
  }
  void break_line() {
    if (indent_ < 0) return;
    text += '\n';
    text.append(static_cast<std::size_t>(indent_) * depth_, ' ');
  }

  int indent_;
  std::size_t depth_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, JsonBudget& budget, std::size_t deepest) {
  Builder builder{budget, deepest};
  if (nlohmann::ordered_json::sax_parse(text, &builder)) return std::move(builder.root);
  return Json::discarded();
}

Json parse_json(std::string_view text) {
  try {
    JsonBudget budget;
    return parse_json(text, budget);
  } catch (const std::exception&) {
    return Json::discarded();
  }
}

std::string Json::dump(int indent) const {
  Writer writer{indent};
  writer.write(*this);
  return std::move(writer.text);
}

}  // namespace oomrec::tools
