#include "tools/service/watch/pressure_trigger.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "common/system/files.h"

namespace oomrec::tools::service {
namespace {

constexpr std::string_view kTrigger = "some 200000 2000000";

std::string pressure_file() { return std::string{system::g_roots.proc} + "/pressure/memory"; }

// RFC 4648, without line breaks; what is no letter of it ends the text.
std::string from_base64(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, held = 0;
  for (const char letter : text) {
    const std::size_t value = kLetters.find(letter);
    if (value == kLetters.npos) break;
    held = held << 6 | static_cast<unsigned>(value);
    bits += 6;
    if (bits >= 8) bytes += static_cast<char>(held >> (bits -= 8) & 0xff);
  }
  return bytes;
}

}  // namespace

PressureTrigger::PressureTrigger() {
  const char* const named = std::getenv("MEMORY_PRESSURE_WATCH");
  if (named != nullptr && *named != '\0') {
    off_ = std::string_view{named} == "/dev/null" || !watch_named(named);
    return;
  }
  descriptor_ = open(pressure_file().c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ >= 0 && write(descriptor_, kTrigger.data(), kTrigger.size() + 1) < 0) {
    close(descriptor_);
    descriptor_ = -1;
  }
  events_ = POLLPRI;
}

PressureTrigger::~PressureTrigger() {
  if (descriptor_ >= 0) close(descriptor_);
}

// A PSI file, a FIFO or a socket, and what is to be written there first.
bool PressureTrigger::watch_named(const char* path) {
  struct stat status {};
  if (stat(path, &status) != 0) return false;
  stream_ = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
  events_ = stream_ ? POLLIN : POLLPRI;
  if (S_ISSOCK(status.st_mode)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) return false;
    std::strcpy(address.sun_path, path);
    descriptor_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(descriptor_);
      descriptor_ = -1;
    }
  } else {
    descriptor_ = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  }
  if (descriptor_ < 0) return false;
  const char* const encoded = std::getenv("MEMORY_PRESSURE_WRITE");
  const std::string first = encoded != nullptr ? from_base64(encoded) : std::string{};
  return S_ISFIFO(status.st_mode) || first.empty() ||
         write(descriptor_, first.data(), first.size()) == static_cast<ssize_t>(first.size());
}

void PressureTrigger::take() const {
  char bytes[256];
  if (!stream_) return;
  while (read(descriptor_, bytes, sizeof bytes) == static_cast<ssize_t>(sizeof bytes)) continue;
}

bool PressureTrigger::is_high() const {
  constexpr std::string_view kSome = "some avg10=";
  constexpr double kHigh = 10;
  if (off_) return false;
  std::ifstream file{pressure_file()};
  std::string word;
  std::getline(file, word);
  return word.starts_with(kSome) && std::strtod(word.c_str() + kSome.size(), nullptr) >= kHigh;
}

}  // namespace oomrec::tools::service
