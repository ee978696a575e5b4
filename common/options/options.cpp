// Reads the rows of OOMREC_OPTIONS from an environment. Shared by library and tools: allocates
// nothing, prints nothing.
#include "common/options/options.h"

#include <cstring>
#include <type_traits>

#include "common/options/fault_rules.h"
#include "common/session/device_layout.h"

namespace oomrec {
namespace {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Binary exponent of a suffix; −1 for an unknown one.
constexpr int shift_of(char suffix) noexcept {
  switch (suffix) {
    case 'K':
    case 'k':
      return 10;
    case 'M':
    case 'm':
      return 20;
    case 'G':
    case 'g':
      return 30;
    case 'T':
    case 't':
      return 40;
    default:
      return -1;
  }
}

bool parse_count(std::string_view text, std::uint64_t& count) noexcept {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c) || __builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value)) {
      return false;
    }
  }
  count = value;
  return !text.empty();
}

bool parse_flag(std::string_view text, bool& flag) noexcept {
  const bool yes = text == "1" || text == "yes" || text == "true" || text == "on";
  const bool no = text == "0" || text == "no" || text == "false" || text == "off";
  if (yes || no) flag = yes;
  return yes || no;
}

bool parse_mode(std::string_view text, Mode& mode) noexcept {
  const auto named = value_named<Mode>(kModeNames, text);
  if (named) mode = *named;
  return named.has_value();
}

bool parse_arguments(std::string_view text, RecordedArguments& arguments) noexcept {
  const bool names = text == "names";
  if (names || text == "all") arguments = names ? RecordedArguments::names : RecordedArguments::all;
  return names || text == "all";
}

bool parse_action(std::string_view text, OomAction& action) noexcept {
  constexpr std::string_view kExit = "exit=";
  std::uint64_t status = 0;
  if (text == "continue") {
    action = {};
  } else if (text == "abort") {
    action = {OnOom::abort, 0};
  } else if (text.substr(0, kExit.size()) == kExit &&
             parse_count(text.substr(kExit.size()), status) && status < 256) {
    action = {OnOom::exit, static_cast<int>(status)};
  } else {
    return false;
  }
  return true;
}

// One item of --limit-gpu: SIZE, SIZE@1 or SIZE@cuda:1.
struct DeviceSize {
  static constexpr std::uint64_t kEvery = ~std::uint64_t{0};
  std::uint64_t bytes = 0;
  std::uint64_t vendor = kEvery;
  std::uint64_t ordinal = kEvery;

  bool is_same_device(const DeviceSize& other) const noexcept {
    return vendor == other.vendor && ordinal == other.ordinal;
  }
};

bool parse_device_size(std::string_view text, DeviceSize& item) noexcept {
  constexpr std::string_view kVendors[session::kVendors] = {"cuda:", "hip:"};
  const std::size_t at = text.find('@');
  if (!parse_size(text.substr(0, at), item.bytes) || item.bytes == 0) return false;
  if (at == text.npos) return true;
  text.remove_prefix(at + 1);
  for (std::uint64_t vendor = 0; vendor < session::kVendors; ++vendor) {
    if (!text.starts_with(kVendors[vendor])) continue;
    item.vendor = vendor;
    text.remove_prefix(kVendors[vendor].size());
    break;
  }
  return parse_count(text, item.ordinal);
}

// Calls visit(DeviceSize) for each item of a list. False: invalid.
template <class Visit>
bool for_each_device_size(std::string_view text, Visit visit) noexcept {
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    DeviceSize item;
    if (!parse_device_size(text.substr(0, comma), item)) return false;
    visit(item);
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return true;
}

// Each device may be named only once: two sizes for one device are ambiguous.
bool is_device_sizes(std::string_view text) noexcept {
  bool repeated = false;
  const bool understood = for_each_device_size(text, [&](const DeviceSize& one) noexcept {
    unsigned named = 0;
    for_each_device_size(
        text, [&](const DeviceSize& other) noexcept { named += one.is_same_device(other); });
    repeated = repeated || named > 1;
  });
  return understood && !repeated;
}

bool parse_text(std::string_view text, const char*& value) noexcept {
  value = text.data();  // a variable's: it ends with a NUL
  return true;
}

bool parse_percent(std::string_view text, std::uint64_t& value) noexcept {
  std::uint64_t percent = 0;
  if (!parse_count(text, percent) || percent > 100) return false;
  value = percent;
  return true;
}

bool parse_budget(std::string_view text, std::uint64_t& value) noexcept {
  std::uint64_t bytes = 0;
  if (!parse_size(text, bytes) || bytes < kMinRecordingBytes) return false;
  value = bytes;
  return true;
}

bool parse_rules(std::string_view text, const char*& value) noexcept {
  options::InjectionRules rules;
  return options::parse_rules(text, rules) && parse_text(text, value);
}

bool parse_device_sizes(std::string_view text, const char*& value) noexcept {
  return is_device_sizes(text) && parse_text(text, value);
}

// By the type in the row, because a size and a count have the same C++ type.
template <OptionType type, class Value>
bool parse(std::string_view text, Value& value) noexcept {
#define X(name, parser, placeholder, words, accepted) \
  if constexpr (type == OptionType::name) return parser(text, value);
  OOMREC_OPTION_TYPES(X)
#undef X
}

// "Off" of an option that is a number, a flag, a text or an action.
template <class Value>
constexpr Value off() noexcept {
  if constexpr (std::is_same_v<Value, const char*>)
    return "";
  else
    return Value{};
}
constexpr bool is_off(const char* text) noexcept { return *text == '\0'; }
constexpr bool is_off(const OomAction& action) noexcept { return action.what == OnOom::go_on; }
template <class Value>
constexpr bool is_off(Value value) noexcept {
  return value == Value{};
}

// The value of "NAME=value" if `entry` starts with `name` and '='; else nullptr.
const char* value_of(const char* entry, std::string_view name) noexcept {
  return std::strncmp(entry, name.data(), name.size()) == 0 && entry[name.size()] == '='
             ? entry + name.size() + 1
             : nullptr;
}

constexpr const char* kPrefix = "OOMREC_";

}  // namespace

bool parse_size(std::string_view text, std::uint64_t& bytes) noexcept {
  int shift = 0;
  if (!text.empty() && !is_digit(text.back())) {
    shift = shift_of(text.back());
    if (shift < 0) return false;
    text.remove_suffix(1);
  }
  const std::size_t point = text.find('.');
  const std::string_view decimals = point == text.npos ? "" : text.substr(point + 1);
  std::uint64_t value = 0;
  if (!parse_count(text.substr(0, point), value) || value > (~std::uint64_t{0} >> shift))
    return false;
  value <<= shift;
  if (point != text.npos) {
    // Fractions of a byte are invalid; nine decimals are finer than one byte for all units but T.
    std::uint64_t numerator = 0, denominator = 1;
    if (shift == 0 || decimals.size() > 9 || !parse_count(decimals, numerator)) return false;
    for (std::size_t i = 0; i < decimals.size(); ++i) denominator *= 10;
    const auto scaled = static_cast<unsigned __int128>(numerator) << shift;
    const auto fraction = static_cast<std::uint64_t>(scaled / denominator);
    if (__builtin_add_overflow(value, fraction, &value)) return false;
  }
  bytes = value;
  return true;
}

std::uint64_t device_limit(std::string_view text, session::Vendor vendor, int ordinal) noexcept {
  std::uint64_t by_vendor = 0, by_number = 0, of_every = 0;
  for_each_device_size(text, [&](const DeviceSize& item) noexcept {
    if (item.ordinal == DeviceSize::kEvery) {
      of_every = item.bytes;
    } else if (ordinal < 0 || item.ordinal != static_cast<std::uint64_t>(ordinal)) {
      return;
    } else if (item.vendor == DeviceSize::kEvery) {
      by_number = item.bytes;
    } else if (item.vendor == static_cast<std::uint64_t>(vendor)) {
      by_vendor = item.bytes;
    }
  });
  return by_vendor != 0 ? by_vendor : by_number != 0 ? by_number : of_every;
}

Options read_options(const char* const* environment, OptionProblems& problems) noexcept {
  Options options;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const char* const entry = *environment;
    if (std::strncmp(entry, kPrefix, std::strlen(kPrefix)) != 0) continue;
      // An empty value means "not set".
#define X(field, name, type, scope, traits, fallback, help)                                \
  if (const char* const text = value_of(entry, #name); text != nullptr && *text != '\0') { \
    options.set_named(OptionId::field);                                                    \
    if (!parse<OptionType::type>(text, options.field)) problems.add({#name, text});        \
  }
    OOMREC_OPTIONS(X)
#undef X
  }
  return options;
}

bool is_chosen(const Options& options, OptionId id) noexcept {
  const Options defaults;
  switch (id) {
#define X(field, name, type, scope, traits, fallback, help) \
  case OptionId::field:                                     \
    return !is_off(options.field) && (options.is_named(id) || is_off(defaults.field));
    OOMREC_OPTIONS(X)
#undef X
  }
  return false;
}

void turn_off(Options& options, OptionTraits trait) noexcept {
#define X(field, name, type, scope, traits, fallback, help) \
  if (((traits)&trait) != 0) options.field = off<decltype(options.field)>();
  OOMREC_OPTIONS(X)
#undef X
}

std::string_view accepted_by(std::string_view variable) noexcept {
#define X(type, parser, placeholder, words, accepted) accepted,
  constexpr std::string_view kAccepted[] = {OOMREC_OPTION_TYPES(X)};
#undef X
#define X(field, name, type, scope, traits, fallback, help) \
  if (variable == #name) return kAccepted[static_cast<unsigned>(OptionType::type)];
  OOMREC_OPTIONS(X)
#undef X
  return {};
}

}  // namespace oomrec
