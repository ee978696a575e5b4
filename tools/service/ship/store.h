// Where bundles are shipped to: an object store, a directory, or whatever the user's command
// writes to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace oomrec::tools::service {

enum class PutResult : std::uint8_t {
  stored,       // or it was there already
  refused,      // of this object; another may be accepted
  unreachable,  // no other would arrive, either
};

// Stores a file under a name such as "rows/day=2026-11-30/node7-….json". Blocks, so it runs in a
// child process. Reports on stderr what went wrong. Storing an object twice changes nothing.
using Put = std::function<PutResult(const std::string& name, const std::filesystem::path& file)>;

// s3://BUCKET/PREFIX, http[s]://…{name}…, file:///DIRECTORY, or @FILE, which contains such a URL.
// Throws Error for any other URL, and if what it needs is missing.
Put put_to_url(const std::string& url);

// Runs `command` with sh. It gets the file and the name as "$1" and "$2", and as OOMREC_SHIP_FILE
// and OOMREC_SHIP_NAME.
Put put_by_command(const std::string& command);

// Keeps letters, digits, "-._~" and "/"; other bytes become %XX.
std::string percent_encoded(std::string_view text);

// Uploads a file with curl.
struct Credentials {
  std::string key_id, secret;
  std::string session_token;  // empty: none
};

struct Upload {
  std::string url;
  std::filesystem::path file;
  std::string name;                          // of the object, for messages
  const Credentials* credentials = nullptr;  // to sign the request for S3; null: not signed
  std::string region = {};
};

// Puts the file, unless there is an object already. curl gets the URL and the credentials on its
// standard input: everybody can read its command line.
PutResult upload(const Upload& upload);

}  // namespace oomrec::tools::service
