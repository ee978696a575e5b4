#include "tools/service/ship/curl_upload.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cctype>
#include <string_view>

#include "tools/base/error.h"
#include "tools/base/log.h"
#include "tools/base/number.h"
#include "tools/base/programs.h"
#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

constexpr int kPreconditionFailed = 412;
// Sent without waiting for the store's consent. Without "Expect" at all curl 7.88 signs it still.
constexpr std::uint64_t kSmallBytes = 64 * 1024;
constexpr std::size_t kMostAnswer = 200;  // of a refusal, in the message

// One option of a curl configuration, quoted.
std::string option(std::string_view name, std::string_view value) {
  std::string quoted;
  for (const char c : value) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) continue;  // would end the option
    if (c == '\\' || c == '"') quoted += '\\';
    quoted += c;
  }
  return fmt::format("{} = \"{}\"\n", name, quoted);
}

std::string configuration(const Upload& upload) {
  std::error_code error;
  const bool is_small = std::filesystem::file_size(upload.file, error) <= kSmallBytes;
  // Not "data": curl 7.88 signs such a request wrongly.
  std::string text = option("url", upload.url) + option("upload-file", upload.file.string()) +
                     option("header", "Content-Type: application/octet-stream") +
                     option("header", "If-None-Match: *") +
                     option("expect100-timeout", is_small ? "0.001" : "0.1");
  if (upload.credentials == nullptr) return text;
  const Credentials& key = *upload.credentials;
  // S3 demands it, and curl 7.88 does not add it by itself.
  text += option("header", "x-amz-content-sha256: UNSIGNED-PAYLOAD") +
          option("aws-sigv4", fmt::format("aws:amz:{}:s3", upload.region)) +
          option("user", fmt::format("{}:{}", key.key_id, key.secret));
  if (!key.session_token.empty())
    text += option("header", "X-Amz-Security-Token: " + key.session_token);
  return text;
}

PutResult report(const Upload& upload, PutResult result, std::string_view problem) {
  remark(fmt::format("--ship: {}: {}", printable(upload.name), printable(problem)));
  return result;
}

}  // namespace

PutResult upload(const Upload& upload) {
  // --disable: reads no .curlrc, which after `sudo -E` is another user's. The speed limit ends a
  // connection that stands still; a slow one may take minutes.
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
    unsetenv(name);
  const ProgramResult result = run_program({"curl",
                                            "--disable",
                                            "--silent",
                                            "--show-error",
                                            "--globoff",
                                            "--proto",
                                            "=http,https",
                                            "--connect-timeout",
                                            "10",
                                            "--speed-limit",
                                            "1",
                                            "--speed-time",
                                            "20",
                                            "--max-time",
                                            "300",
                                            "--max-filesize",
                                            "1000000",
                                            "--write-out",
                                            "\n%{http_code}",
                                            "--config",
                                            "-"},
                                           configuration(upload));
  const std::size_t end = result.output.rfind('\n');
  const std::string_view answer{result.output.data(), end == std::string::npos ? 0 : end};
  const int status = parse_number<int>(std::string_view{result.output}.substr(
                                           end == std::string::npos ? 0 : end + 1))
                         .value_or(0);
  if (result.exit_code == 127)
    return report(upload, PutResult::unreachable, "curl cannot be started");
  if (result.exit_code != 0)
    return report(upload, PutResult::unreachable,
                  fmt::format("curl ended with exit code {}", result.exit_code));
  if (status / 100 == 2 || status == kPreconditionFailed) return PutResult::stored;
  return report(upload, PutResult::refused,
                fmt::format("HTTP {}: {}", status, answer.substr(0, kMostAnswer)));
}

}  // namespace oomrec::tools::service
