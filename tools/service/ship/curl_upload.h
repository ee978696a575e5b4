// Uploads a file with curl.
#pragma once

#include <filesystem>
#include <string>

#include "tools/service/ship/store.h"

namespace oomrec::tools::service {

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
