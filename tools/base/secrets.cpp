#include "tools/base/secrets.h"

#include "common/session/secrets.h"
#include "tools/base/text.h"

namespace oomrec::tools {

std::string mask_secrets(std::string arguments) {
  arguments.resize(session::mask_secrets(arguments.data(), arguments.size()));
  return arguments;
}

std::vector<std::string> masked_words(const std::vector<std::string>& words) {
  std::string arguments;
  for (const std::string& word : words) arguments += word + '\0';
  arguments = mask_secrets(std::move(arguments));
  if (!arguments.empty()) arguments.pop_back();
  std::vector<std::string> masked;
  if (words.empty()) return masked;
  for (const std::string_view word : split(arguments, '\0')) masked.emplace_back(word);
  return masked;
}

}  // namespace oomrec::tools
