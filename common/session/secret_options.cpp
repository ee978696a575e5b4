#include "common/session/secrets.h"

#include <iterator>

namespace oomrec::session {
namespace {

enum class Form : std::uint8_t { attached, separate, either };

struct Row {
  std::string_view program;  // with * at the end: each that begins so
  std::string_view option;
  Form form = Form::either;
  SecretPart part = SecretPart::whole;
  bool only_login = false;
};

// clang-format off
constexpr Row kRows[] = {
    {"mysql*", "-p", Form::attached},  // mysql -p X asks, and X is a database
    {"mariadb*", "-p", Form::attached},
    {"7z*", "-p", Form::attached},
    {"rar", "-p", Form::attached},
    {"unrar", "-p", Form::attached},
    {"zip", "-P"},
    {"unzip", "-P"},
    {"curl", "-u", Form::either, SecretPart::after_colon},
    {"curl", "-U", Form::either, SecretPart::after_colon},
    {"curl", "-E", Form::either, SecretPart::after_colon},
    {"curl", "--user", Form::separate, SecretPart::after_colon},
    {"curl", "--proxy-user", Form::separate, SecretPart::after_colon},
    {"curl", "--cert", Form::separate, SecretPart::after_colon},
    {"curl", "-b", Form::either, SecretPart::assigned},
    {"http", "-a", Form::separate, SecretPart::after_colon},
    {"https", "-a", Form::separate, SecretPart::after_colon},
    {"xh", "-a", Form::separate, SecretPart::after_colon},
    {"sshpass", "-p"},
    {"ssh", ""},  // has no such option, but follows sshpass
    {"scp", ""},
    {"sftp", ""},
    {"rsync", ""},
    {"redis-cli", "-a"},
    {"mongo*", "-p"},
    {"cqlsh", "-p"},
    {"sqlcmd", "-P"},
    {"bcp", "-P"},
    {"ldap*", "-w"},
    {"mosquitto_*", "-P"},
    {"ipmitool", "-P"},
    {"openssl", "-k", Form::separate},
    {"openssl", "-K", Form::separate},
    {"smbclient", "-U", Form::either, SecretPart::after_percent},
    {"rpcclient", "-U", Form::either, SecretPart::after_percent},
    {"docker", "-p", Form::either, SecretPart::whole, true},
    {"podman", "-p", Form::either, SecretPart::whole, true},
    {"nerdctl", "-p", Form::either, SecretPart::whole, true},
    {"buildah", "-p", Form::either, SecretPart::whole, true},
    {"skopeo", "-p", Form::either, SecretPart::whole, true},
    {"helm", "-p", Form::either, SecretPart::whole, true},
    {"oras", "-p", Form::either, SecretPart::whole, true},
    {"az", "-p", Form::either, SecretPart::whole, true},
    {"oc", "-p", Form::either, SecretPart::whole, true},
};
// clang-format on
static_assert(std::size(kRows) <= 64);

bool is_named(std::string_view program, const Row& row) noexcept {
  if (!row.program.ends_with('*')) return program == row.program;
  return program.starts_with(row.program.substr(0, row.program.size() - 1)) &&
         program.find('.') == program.npos;  // not mysql.sql
}

// -sSu: -u at the end of other letters.
bool ends_cluster(std::string_view word, std::string_view option) noexcept {
  constexpr std::size_t kLongest = 6;
  if (word.size() <= 2 || word.size() > kLongest || word[0] != '-' || option.size() != 2)
    return false;
  for (const char c : word.substr(1))
    if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')) return false;
  return word.back() == option[1];
}

}  // namespace

void NamedPrograms::read(std::string_view word) noexcept {
  if (word == "login") has_login_ = true;
  const auto slash = word.rfind('/');
  const std::string_view program = slash == word.npos ? word : word.substr(slash + 1);
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < std::size(kRows); ++i)
    if (is_named(program, kRows[i])) rows |= std::uint64_t{1} << i;
  if (rows == 0) return;
  rows_ = rows;
  has_login_ = false;
}

bool NamedPrograms::find(std::string_view word, SecretOption& found) const noexcept {
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    const Row& row = kRows[i];
    if ((rows_ >> i & 1) == 0 || row.option.empty() || (row.only_login && !has_login_)) continue;
    const bool is_alone = word == row.option;
    const bool has_value = word.size() > row.option.size() && word.starts_with(row.option);
    if ((is_alone || ends_cluster(word, row.option)) && row.form != Form::attached) {
      found = {row.part, false, row.option};
      return true;
    }
    const bool is_assigned = has_value && word.starts_with("--") && word[row.option.size()] == '=';
    if (is_assigned) {
      found = {row.part, true, word.substr(0, row.option.size() + 1)};
      return true;
    }
    if (has_value && row.form != Form::separate) {
      found = {row.part, true, row.option};
      return true;
    }
  }
  return false;
}

}  // namespace oomrec::session
