#include "common/options/fault_rules.h"

#include "common/options/options.h"

namespace oomrec::options {
namespace {

// Removes and returns what precedes the first `separator`.
std::string_view take_until(std::string_view& rest, char separator) noexcept {
  const std::size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == rest.npos ? rest.size() : at + 1);
  return part;
}

bool parse_number(std::string_view text, std::uint64_t& value) noexcept {
  return text.find_first_not_of("0123456789") == text.npos && parse_size(text, value);
}

// Accepts "0.25" and "1" with up to nine decimals; not ".5e-3".
bool parse_chance(std::string_view text, std::uint64_t& chance) noexcept {
  const std::string_view whole = take_until(text, '.');
  std::uint64_t units = 0;
  std::uint64_t decimals = 0;
  std::uint64_t scale = 1;
  if (!parse_number(whole, units) || text.size() > 9) return false;
  if (!text.empty() && !parse_number(text, decimals)) return false;
  for (std::size_t i = 0; i < text.size(); ++i) scale *= 10;
  if (units > 1 || (units == 1 && decimals != 0) || (units == 0 && decimals == 0)) return false;
  const auto part = static_cast<unsigned __int128>(units) * scale + decimals;
  chance = static_cast<std::uint64_t>(part * ~std::uint64_t{0} / scale);
  return true;
}

bool parse_what(std::string_view word, InjectionRule& rule) noexcept {
  rule.heap_only = word == "heap";
  if (rule.heap_only) return true;
  const auto api = api_named(word);
  if (!api) return false;
  rule.api = *api;
  return function_of(rule.api).has(kInjectable);
}

bool parse_site(std::string_view site, InjectionRule& rule) noexcept {
  if (const std::size_t mark = site.find('!'); mark != site.npos) {
    rule.module = site.substr(0, mark);
    rule.function = site.substr(mark + 1);
    return !rule.module.empty() && !rule.function.empty();
  }
  const std::size_t colon = site.rfind(':');
  if (colon == site.npos || !parse_number(site.substr(colon + 1), rule.line)) return false;
  rule.file = site.substr(0, colon);
  while (rule.file.starts_with("./")) rule.file.remove_prefix(2);
  return !rule.file.empty() && rule.line != 0;
}

struct Given {
  bool nth = false, p = false, seed = false, min = false, site = false;
};

bool parse_setting(std::string_view setting, InjectionRule& rule, Given& given) noexcept {
  const std::string_view key = take_until(setting, '=');
  const auto once = [](bool& flag) noexcept { return !flag && (flag = true); };
  if (key == "nth") return once(given.nth) && parse_number(setting, rule.nth) && rule.nth != 0;
  if (key == "p") return once(given.p) && parse_chance(setting, rule.chance);
  if (key == "seed") return once(given.seed) && parse_number(setting, rule.seed);
  if (key == "min") return once(given.min) && parse_size(setting, rule.min_bytes);
  return key == "site" && once(given.site) && parse_site(setting, rule);
}

bool parse_rule(std::string_view text, InjectionRule& rule) noexcept {
  rule.text = text;
  // WHAT ends before the first colon; a `=` before that means that there is no WHAT.
  const std::size_t end = text.find_first_of(":=");
  if (end == text.npos) return parse_what(text, rule);
  if (text[end] == ':') {
    if (!parse_what(text.substr(0, end), rule)) return false;
    text.remove_prefix(end + 1);
  }
  Given given;
  do {
    if (!parse_setting(take_until(text, ','), rule, given)) return false;
  } while (!text.empty());
  return !(given.nth && given.p) && (!given.seed || given.p);
}

bool ends_with_path(std::string_view whole, std::string_view end) noexcept {
  return whole.ends_with(end) &&
         (whole.size() == end.size() || whole[whole.size() - end.size() - 1] == '/');
}

}  // namespace

bool InjectionRule::concerns_heap() const noexcept {
  return heap_only || api == Api::none || (!is_driver_api(api) && space_of(api) == Space::heap);
}

bool InjectionRule::fits(Api asked, Space space, std::uint64_t bytes, bool by_new) const noexcept {
  const bool is_task = function_of(asked).has(kStartsThread | kStartsProcess);
  const bool may_have_no_size = is_task || is_driver_api(asked);  // for example a context
  if (bytes < min_bytes || (bytes == 0 && !may_have_no_size)) return false;
  if (heap_only) return space == Space::heap;
  if (api == Api::none) return !is_task && bytes != 0;
  return api == asked || (by_new && api == Api::operator_new);
}

bool parse_rules(std::string_view text, InjectionRules& rules) noexcept {
  rules.count = 0;
  while (!text.empty()) {
    if (rules.count == kMaxRules) return false;
    InjectionRule& rule = rules.rules[rules.count++];
    rule = {};
    if (!parse_rule(take_until(text, ';'), rule)) return false;
  }
  return rules.count != 0;
}

bool is_module(std::string_view path, std::string_view module) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

bool is_file(std::string_view code_file, std::string_view file) noexcept {
  return ends_with_path(code_file, file) || ends_with_path(file, code_file);
}

}  // namespace oomrec::options
