#include "common/session/secrets.h"

#include <algorithm>

namespace oomrec::session {
namespace {

constexpr bool is_letter_or_digit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
constexpr bool is_word(char c) noexcept { return is_letter_or_digit(c) || c == '_' || c == '-'; }

// What follows a prefix.
enum class Tail {
  word,    // letters, digits, _ and -
  dotted,  // the same in parts with dots between them
  plain,   // letters and digits, mixed: hf_ and npm_ begin ordinary names, too
};
struct TokenShape {
  std::string_view prefix;
  std::size_t shortest;  // bytes of the tail
  Tail tail = Tail::word;
};

constexpr TokenShape kTokens[] = {
    // OpenAI, Anthropic, Stripe
    {"sk-live-", 4},
    {"sk-test-", 4},
    {"sk-proj-", 4},
    {"sk-ant-", 4},
    {"sk-or-", 8},
    {"sk-svcacct-", 4},
    {"sk-admin-", 4},
    {"sk-", 16, Tail::plain},
    {"sk_live_", 4},
    {"sk_test_", 4},
    {"rk_live_", 4},
    {"rk_test_", 4},
    {"pk_live_", 4},
    {"whsec_", 8},
    // GitHub, GitLab, Docker, npm, PyPI
    {"ghp_", 6},
    {"gho_", 6},
    {"ghu_", 6},
    {"ghs_", 6},
    {"ghr_", 6},
    {"github_pat_", 6},
    {"glpat-", 6},
    {"gldt-", 8},
    {"glrt-", 8},
    {"glptt-", 8},
    {"glcbt-", 8},
    {"dckr_pat_", 6},
    {"npm_", 16, Tail::plain},
    {"pypi-Ag", 4},
    // Slack
    {"xoxb-", 6},
    {"xoxp-", 6},
    {"xoxa-", 6},
    {"xoxr-", 6},
    {"xoxs-", 6},
    {"xoxe-", 6},
    {"xoxe.", 6, Tail::dotted},
    {"xapp-", 6},
    // clouds
    {"AKIA", 12, Tail::plain},
    {"ASIA", 12, Tail::plain},
    {"AIza", 16},
    {"ya29.", 12, Tail::dotted},
    {"GOCSPX-", 8},
    {"dop_v1_", 16},
    {"doo_v1_", 16},
    {"hvs.", 12},
    {"hvb.", 12},
    {"dapi", 30, Tail::plain},
    {"shpat_", 16},
    {"shpss_", 16},
    {"SG.", 16, Tail::dotted},
    {"ATATT3", 12},
    {"lin_api_", 12},
    {"sntrys_", 12},
    {"glsa_", 12},
    {"glc_", 16},
    {"PMAK-", 12},
    {"figd_", 12},
    {"AGE-SECRET-KEY-1", 12},
    // models
    {"hf_", 16, Tail::plain},
    {"nvapi-", 12},
    {"r8_", 16, Tail::plain},
    {"gsk_", 16, Tail::plain},
    {"xai-", 20, Tail::plain},
    {"pplx-", 16, Tail::plain},
    {"tvly-", 12},
    {"rpa_", 16, Tail::plain},
    {"esecret_", 8},
    {"fw_", 16, Tail::plain},
};

// URLs that are secrets themselves, after this part.
constexpr std::string_view kSecretUrls[] = {"hooks.slack.com/services/",
                                            "discord.com/api/webhooks/",
                                            "discordapp.com/api/webhooks/", "api.telegram.org/bot"};

constexpr std::string_view kBlanksAndQuotes = " \t\r\n\"'`\\<>";

std::size_t end_of(std::string_view text, std::size_t at, Tail tail) noexcept {
  const auto belongs = [tail](char c) {
    return tail == Tail::plain ? is_letter_or_digit(c)
                               : is_word(c) || (tail == Tail::dotted && c == '.');
  };
  while (at < text.size() && belongs(text[at])) ++at;
  return at;
}

Span token_at(std::string_view text, std::size_t at) noexcept {
  for (const TokenShape& shape : kTokens) {
    if (!text.substr(at).starts_with(shape.prefix)) continue;
    const std::size_t tail = at + shape.prefix.size();
    const std::size_t end = end_of(text, tail, shape.tail);
    if (end - tail < shape.shortest) continue;
    if (shape.tail == Tail::plain && !looks_random(text.substr(tail, end - tail))) continue;
    return {at, end_of(text, end, Tail::word)};
  }
  return {};
}

// eyJhbGciOi….eyJzdWIi….c2lnbmF0dXJl: JSON in base64 begins with eyJ.
Span web_token_at(std::string_view text, std::size_t at) noexcept {
  constexpr std::size_t kShortestPart = 8;
  if (!text.substr(at).starts_with("eyJ")) return {};
  const std::size_t first = end_of(text, at, Tail::word);
  if (first - at < kShortestPart || first == text.size() || text[first] != '.') return {};
  return {at, end_of(text, first, Tail::dotted)};
}

Span private_key_at(std::string_view text, std::size_t at) noexcept {
  constexpr std::string_view kBegin = "-----BEGIN ", kPrivate = "PRIVATE KEY";
  constexpr std::size_t kLongestType = 24;
  if (!text.substr(at).starts_with(kBegin)) return {};
  const std::size_t type = at + kBegin.size();
  const std::size_t found = text.substr(type, kLongestType + kPrivate.size()).find(kPrivate);
  if (found == text.npos) return {};
  const std::size_t start = std::min(text.find("-----", type + found), text.size());
  const std::size_t body = std::min(start + 5, text.size());
  return {body, std::min(text.find("-----END", body), text.size())};
}

Span secret_url_at(std::string_view text, std::size_t at) noexcept {
  for (const std::string_view prefix : kSecretUrls) {
    if (!text.substr(at).starts_with(prefix)) continue;
    const std::size_t start = at + prefix.size();
    return {start, std::min(text.find_first_of(kBlanksAndQuotes, start), text.size())};
  }
  return {};
}

// The password in ://user:password@host. It may contain a slash or an @, although it should not.
Span url_password_at(std::string_view text, std::size_t at) noexcept {
  if (!text.substr(at).starts_with("://")) return {};
  const std::size_t start = at + 3;
  constexpr std::size_t kLongest = 1024;  // keeps the work linear in the text
  const std::string_view rest = text.substr(start, kLongest);
  const std::string_view url = rest.substr(0, rest.find_first_of(kBlanksAndQuotes));
  const std::size_t colon = url.find(':');
  std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  if (authority.find('@') == authority.npos) {
    // Not a port: the slash is the password's.
    const bool is_port = colon < authority.size() &&
                         std::all_of(authority.begin() + static_cast<std::ptrdiff_t>(colon) + 1,
                                     authority.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (colon >= authority.size() || is_port || authority.starts_with('[')) return {};
    authority = url;
  }
  const std::size_t host = authority.rfind('@');
  if (host == authority.npos) return {};
  if (colon <= host) return {start + colon + 1, start + host};
  // https://TOKEN@github.com
  constexpr std::size_t kShortestToken = 16;
  const std::string_view scheme = text.substr(0, at);
  const bool is_token = (scheme.ends_with("http") || scheme.ends_with("https")) &&
                        host >= kShortestToken && looks_random(authority.substr(0, host));
  return is_token ? Span{start, start + host} : Span{};
}

}  // namespace

Span secret_shape_at(std::string_view text, std::size_t at) noexcept {
  if (text[at] == ':') return url_password_at(text, at);
  if (text[at] == '-') return private_key_at(text, at);
  if (!is_letter_or_digit(text[at])) return {};
  if (at > 0 && (is_letter_or_digit(text[at - 1]) || text[at - 1] == '_')) return {};
  for (const auto shape_at : {token_at, web_token_at, secret_url_at}) {
    const Span found = shape_at(text, at);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace oomrec::session
