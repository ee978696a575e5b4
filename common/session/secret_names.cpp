#include "common/session/secrets.h"

#include <algorithm>
#include <cstddef>

namespace oomrec::session {
namespace {

using Word = std::string_view;

// Anywhere in a name.
constexpr Word kFragments[] = {
    "password",  "passwd",        "passphrase",  "passcode",   "secret",     "credential",
    "apikey",    "authtoken",     "accesstoken", "privatekey", "accountkey", "accesskey",
    "secretkey", "authorization", "sessionid",   "phpsessid",  "storepass",  "keypass",
    "dbpass",    "userpass",      "rootpass",    "adminpass"};
// As the last word.
constexpr Word kCertain[] = {"pw", "pass", "creds", "cred", "jwt", "bearer", "otp", "apitoken"};
// As the last word: what follows describes a secret, and is none.
constexpr Word kDescriptions[] = {
    "file",    "files",   "path",     "dir",     "name",    "names",    "id",     "ids",
    "len",     "length",  "size",     "sizes",   "type",    "types",    "format", "count",
    "limit",   "limits",  "ttl",      "timeout", "expiry",  "stdin",    "prompt", "manager",
    "store",   "backend", "provider", "url",     "uri",     "env",      "var",    "policy",
    "jar",     "rate",    "prefix",   "version", "mode",    "method",   "hash",   "field",
    "column",  "regex",   "only",     "expires", "age",     "rotation", "days",   "hours",
    "seconds", "mount",   "less",     "budget",  "scanning"};
// Which token is text.
constexpr Word kTextWords[] = {
    "max",     "min",     "num",     "n",           "total",  "new",    "per",    "eos",   "bos",
    "pad",     "unk",     "mask",    "cls",         "sep",    "stop",   "start",  "end",   "begin",
    "special", "image",   "video",   "audio",       "vision", "text",   "word",   "sub",   "char",
    "byte",    "extra",   "added",   "first",       "last",   "next",   "prev",   "input", "output",
    "prompt",  "single",  "decode",  "context",     "think",  "eot",    "eod",    "eom",   "fim",
    "boi",     "eoi",     "control", "placeholder", "time",   "target", "source", "src",   "tgt",
    "label",   "trigger", "cost",    "seconds",     "draft"};
// Which token is a secret in any case.
constexpr Word kAuthWords[] = {"api",      "auth",    "access",   "refresh",     "bearer",
                               "secret",   "hf",      "id",       "oauth",       "csrf",
                               "xsrf",     "github",  "gitlab",   "gh",          "hub",
                               "npm",      "pypi",    "slack",    "bot",         "vault",
                               "wandb",    "session", "jupyter",  "security",    "private",
                               "personal", "deploy",  "registry", "huggingface", "huggingfacehub",
                               "sas",      "login",   "service"};
// Which key is a secret.
constexpr Word kKeyWords[] = {
    "api",     "access",     "secret",       "private",   "auth",    "account",  "encryption",
    "license", "signing",    "service",      "master",    "app",     "client",   "shared",
    "storage", "deploy",     "openai",       "anthropic", "wandb",   "hf",       "aws",
    "azure",   "gcp",        "google",       "github",    "datadog", "dd",       "sentry",
    "cohere",  "mistral",    "groq",         "comet",     "neptune", "pinecone", "stripe",
    "twilio",  "sendgrid",   "mailgun",      "aes",       "hmac",    "rsa",      "decrypt",
    "encrypt", "decryption", "subscription", "consumer",  "session", "server"};
// Which pass is one over data.
constexpr Word kPasses[] = {"two",      "multi", "first", "second", "single", "one",  "forward",
                            "backward", "n",     "num",   "render", "opt",    "max",  "by",
                            "all",      "low",   "high",  "band",   "num",    "last", "full"};
// Options that only switch something; no value follows.
constexpr Word kSwitches[] = {"no",   "disable", "skip",     "without", "ignore", "hide", "print",
                              "show", "list",    "generate", "reset",   "rotate", "mask"};
// What follows --auth, --token or --cookie without being secret.
constexpr Word kChoices[] = {
    "none",  "null",      "basic",    "digest",  "bearer",   "oauth",    "oauth2", "ntlm", "true",
    "false", "negotiate", "kerberos", "token",   "jwt",      "ldap",     "saml",   "iam",  "ssl",
    "tls",   "required",  "optional", "yes",     "no",       "on",       "off",    "auto", "cls",
    "mean",  "last",      "first",    "enabled", "disabled", "anonymous"};
constexpr Word kExtensions[] = {".json", ".txt",  ".pem", ".key", ".crt", ".yaml",
                                ".yml",  ".toml", ".ini", ".cfg", ".env", ".py",
                                ".jar",  ".jks",  ".p12", ".pub", ".csv", ".log"};

constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_alphanumeric(char c) noexcept {
  return is_lower(c) || is_upper(c) || is_digit(c);
}
constexpr char lower(char c) noexcept { return is_upper(c) ? static_cast<char>(c + 32) : c; }

template <std::size_t N>
bool is_one_of(Word word, const Word (&words)[N]) noexcept {
  return std::any_of(std::begin(words), std::end(words),
                     [&](Word one) { return equals_ignoring_case(word, one); });
}

bool contains_fragment(Word word) noexcept {
  return std::any_of(std::begin(kFragments), std::end(kFragments), [&](Word fragment) {
    return std::search(word.begin(), word.end(), fragment.begin(), fragment.end(),
                       [](char a, char b) { return lower(a) == b; }) != word.end();
  });
}

// A name's words. Of a longer one the last words count.
class Words {
 public:
  explicit Words(std::string_view name) noexcept {
    std::size_t end = name.size();
    while (count_ < kMost) {
      while (end > 0 && !is_alphanumeric(name[end - 1])) --end;
      if (end == 0) return;
      std::size_t start = end - 1;
      while (start > 0 && is_alphanumeric(name[start - 1]) && !begins_word(name, start)) --start;
      Word word = name.substr(start, end - start);
      while (!word.empty() && is_digit(word.back())) word.remove_suffix(1);
      // A number at the end only counts: API_KEY_2.
      if (!word.empty() || count_ != 0) words_[count_++] = word;
      end = start;
    }
  }

  bool empty() const noexcept { return count_ == 0; }
  Word head() const noexcept { return words_[0]; }
  Word first() const noexcept { return words_[count_ - 1]; }
  bool is_single() const noexcept { return count_ == 1; }

  // Besides the head.
  template <std::size_t N>
  bool has_one_of(const Word (&words)[N]) const noexcept {
    return std::any_of(words_ + 1, words_ + count_,
                       [&](Word word) { return is_one_of(word, words); });
  }
  bool has_fragment() const noexcept {
    return std::any_of(words_, words_ + count_, contains_fragment);
  }

 private:
  static constexpr std::size_t kMost = 12;

  // maxTokens, APIKey
  static bool begins_word(std::string_view name, std::size_t at) noexcept {
    if (!is_upper(name[at])) return false;
    const char before = name[at - 1];
    return is_lower(before) || is_digit(before) ||
           (is_upper(before) && at + 1 < name.size() && is_lower(name[at + 1]));
  }

  Word words_[kMost];  // the last one first
  std::size_t count_ = 0;
};

// hftoken, eostoken: two words in one. Empty: it is the last word itself, or does not end so.
Word before_suffix(Word word, std::size_t suffix_bytes) noexcept {
  return word.substr(0, word.size() - std::min(word.size(), suffix_bytes));
}
bool ends_with_word(Word word, Word suffix) noexcept {
  return word.size() >= suffix.size() &&
         equals_ignoring_case(word.substr(word.size() - suffix.size()), suffix);
}

NameKind kind_of_token(const Words& words) noexcept {
  const Word before = before_suffix(words.head(), 5);
  if (words.has_one_of(kAuthWords) || is_one_of(before, kAuthWords)) return NameKind::certain;
  const bool is_text = words.has_one_of(kTextWords) || is_one_of(before, kTextWords);
  return is_text ? NameKind::harmless : NameKind::maybe;
}

NameKind kind_of_key(const Words& words) noexcept {
  if (words.has_one_of(kKeyWords)) return NameKind::key;
  return words.is_single() ? NameKind::opaque : NameKind::harmless;
}

bool is_path(std::string_view value) noexcept {
  return value.starts_with('/') || value.starts_with("./") || value.starts_with("../") ||
         value.starts_with("~/") ||
         std::any_of(std::begin(kExtensions), std::end(kExtensions),
                     [&](Word extension) { return value.ends_with(extension); });
}

bool is_small_number(std::string_view value) noexcept {
  constexpr std::size_t kMostDigits = 3;
  return value.size() <= kMostDigits && std::all_of(value.begin(), value.end(), is_digit);
}

// <|endoftext|>, [MASK]
bool is_special_token(std::string_view value) noexcept {
  return (value.starts_with('<') && value.ends_with('>')) ||
         (value.starts_with('[') && value.ends_with(']'));
}

}  // namespace

bool equals_ignoring_case(std::string_view text, std::string_view lower_case) noexcept {
  return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                    [](char a, char b) { return lower(a) == b; });
}

bool looks_random(std::string_view text) noexcept {
  const bool digits = std::any_of(text.begin(), text.end(), is_digit);
  const bool small = std::any_of(text.begin(), text.end(), is_lower);
  const bool capitals = std::any_of(text.begin(), text.end(), is_upper);
  return digits + small + capitals >= 2;
}

NameKind kind_of_name(std::string_view name) noexcept {
  const Words words{name};
  if (words.empty()) return NameKind::harmless;
  const Word head = words.head();
  if (is_one_of(head, kDescriptions)) return NameKind::harmless;
  if (!words.is_single() && is_one_of(words.first(), kSwitches)) return NameKind::harmless;
  if (words.has_fragment()) return NameKind::certain;
  if (equals_ignoring_case(head, "pass"))
    return words.has_one_of(kPasses) ? NameKind::harmless : NameKind::maybe;
  if (is_one_of(head, kCertain)) return NameKind::certain;
  if (equals_ignoring_case(head, "pwd")) return NameKind::key;
  if (equals_ignoring_case(head, "auth") || equals_ignoring_case(head, "cookie") ||
      equals_ignoring_case(head, "cookies"))
    return NameKind::maybe;
  if (equals_ignoring_case(head, "tokens"))
    return words.has_one_of(kAuthWords) ? NameKind::maybe : NameKind::harmless;
  if (ends_with_word(head, "token")) return kind_of_token(words);
  if (equals_ignoring_case(head, "key") || equals_ignoring_case(head, "keys"))
    return kind_of_key(words);
  return NameKind::harmless;
}

bool is_secret_value(NameKind kind, std::string_view value) noexcept {
  constexpr std::size_t kShortestOpaque = 8;
  if (value.empty() || kind == NameKind::harmless) return false;
  if (kind == NameKind::certain) return true;
  if (is_path(value)) return false;
  if (kind == NameKind::key) return true;
  if (kind == NameKind::opaque) return value.size() >= kShortestOpaque && looks_random(value);
  return !is_small_number(value) && !is_one_of(value, kChoices) && !is_special_token(value);
}

}  // namespace oomrec::session
