#include "tools/service/ship/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "tools/base/descriptor.h"
#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/foreign_file.h"
#include "tools/base/output_file.h"
#include "tools/base/programs.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostUrlBytes = 16 * 1024;
constexpr std::uint64_t kMostObjectBytes = std::uint64_t{64} << 20;
constexpr std::string_view kNameInUrl = "{name}";

std::string variable(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (std::string value = environment_variable(name); !value.empty()) return value;
  return {};
}

std::string required_variable(const char* name) {
  std::string value = variable({name});
  if (value.empty())
    throw Error{Exit::bad_input, fmt::format("--ship s3:// needs a key, and {} is not set", name),
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that may put objects."};
  return value;
}

void require_curl() {
  if (is_in_path("curl")) return;
  throw Error{Exit::bad_input, "--ship needs curl for this URL, which is not in PATH",
              "Install curl, or use file:///DIRECTORY or --ship-exec."};
}

// --- s3:// ---------------------------------------------------------------------------------------

struct S3 {
  std::string address;  // of the prefix, with a slash at its end
  std::string region;
  Credentials credentials;
};

// The path names the bucket, which every implementation understands.
S3 s3_at(std::string_view bucket_and_prefix) {
  while (bucket_and_prefix.ends_with('/')) bucket_and_prefix.remove_suffix(1);
  if (bucket_and_prefix.empty() || bucket_and_prefix.starts_with('/'))
    throw Error{Exit::bad_input, "--ship s3:// names no bucket", "Give s3://BUCKET/PREFIX."};
  S3 s3;
  s3.region = variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (s3.region.empty()) s3.region = "us-east-1";
  std::string endpoint = variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (endpoint.empty()) endpoint = fmt::format("https://s3.{}.amazonaws.com", s3.region);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  s3.address = fmt::format("{}/{}/", endpoint, percent_encoded(bucket_and_prefix));
  s3.credentials = {required_variable("AWS_ACCESS_KEY_ID"),
                    required_variable("AWS_SECRET_ACCESS_KEY"), variable({"AWS_SESSION_TOKEN"})};
  return s3;
}

Put put_to_s3(std::string_view bucket_and_prefix) {
  require_curl();
  return [s3 = s3_at(bucket_and_prefix)](const std::string& name, const fs::path& file) {
    return upload({.url = s3.address + percent_encoded(name),
                   .file = file,
                   .name = name,
                   .credentials = &s3.credentials,
                   .region = s3.region});
  };
}

// --- http[s]:// ----------------------------------------------------------------------------------

Put put_to_template(const std::string& url) {
  require_curl();
  if (url.find(kNameInUrl) == url.npos)
    throw Error{Exit::bad_input, "the URL of --ship does not say where the object's name goes",
                "Write {name} in its path: https://HOST/PATH/{name}?SIGNATURE"};
  return [url](const std::string& name, const fs::path& file) {
    const std::size_t at = url.find(kNameInUrl);
    return upload({.url = fmt::format("{}{}{}", url.substr(0, at), percent_encoded(name),
                                      url.substr(at + kNameInUrl.size())),
                   .file = file,
                   .name = name});
  };
}

// --- file:// -------------------------------------------------------------------------------------

// Without it a crash of the machine could leave an empty file under the final name.
void sync_to_disk(const fs::path& path) {
  const Descriptor descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) fsync(descriptor);
}

// Under a name that no other process uses, then renamed: nobody sees a part of it.
void copy_durably(const fs::path& file, const fs::path& to) {
  fs::create_directories(to.parent_path());
  const fs::path partial =
      to.parent_path() / fmt::format(".{}.{}.partial", to.filename().string(), getpid());
  try {
    write_output(partial, read_foreign_file(ForeignPath::named(file), kMostObjectBytes),
                 IfExists::overwrite);
    sync_to_disk(partial);
    fs::rename(partial, to);
  } catch (...) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    throw;
  }
  sync_to_disk(to.parent_path());
}

Put put_to_directory(const fs::path& directory) {
  if (!directory.is_absolute())
    throw Error{Exit::bad_input, "--ship file:// names no absolute path",
                "Give file:///DIRECTORY, with three slashes."};
  return [directory](const std::string& name, const fs::path& file) {
    const fs::path to = directory / name;
    try {
      if (!fs::exists(to)) copy_durably(file, to);
      return PutResult::stored;
    } catch (const std::exception& error) {
      remark(fmt::format("--ship: {}: {}", printable(to.string()), printable(error.what())));
      return PutResult::unreachable;
    }
  };
}

std::string url_in_file(const std::string& file) {
  try {
    const std::string text = read_foreign_file(ForeignPath::named(file), kMostUrlBytes);
    return text.substr(0, text.find_first_of("\r\n"));
  } catch (const std::runtime_error& error) {
    throw Error{Exit::bad_input,
                fmt::format("--ship: {} {}", printable(file), printable(error.what())),
                "Give @FILE, with the URL in its first line."};
  }
}

// What follows `scheme`; nothing if the URL does not begin with it.
std::optional<std::string_view> after(std::string_view scheme, std::string_view url) {
  if (!url.starts_with(scheme)) return {};
  return url.substr(scheme.size());
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        byte < 0x80 &&
        (std::isalnum(byte) != 0 || std::string_view{"-._~/"}.find(c) != std::string_view::npos);
    if (is_plain)
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", byte);
  }
  return encoded;
}

Put put_to_url(const std::string& url) {
  if (const auto file = after("@", url)) return put_to_url(url_in_file(std::string{*file}));
  const bool is_plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
  if (const auto bucket = after("s3://", url); bucket && is_plain) return put_to_s3(*bucket);
  if (const auto path = after("file://", url)) return put_to_directory(*path);
  if ((after("https://", url) || after("http://", url)) && is_plain) return put_to_template(url);
  throw Error{
      Exit::bad_input, "the URL of --ship is not one that bundles can be shipped to",
      "Give s3://BUCKET/PREFIX, https://HOST/…{name}…, file:///DIRECTORY, or @FILE with such "
      "a URL; for anything else use --ship-exec."};
}

Put put_by_command(const std::string& command) {
  return [command](const std::string& name, const fs::path& file) {
    setenv("OOMREC_SHIP_FILE", file.c_str(), 1);
    setenv("OOMREC_SHIP_NAME", name.c_str(), 1);
    const ProgramResult result = run_program({"/bin/sh", "-c", command, "sh", file.string(), name});
    if (result.exit_code == 0) return PutResult::stored;
    remark(fmt::format("--ship-exec: exit code {} for {}", result.exit_code, printable(name)));
    return PutResult::refused;
  };
}

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
