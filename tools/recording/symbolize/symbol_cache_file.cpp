#include "tools/recording/symbolize/symbol_cache_file.h"

#include <cstring>
#include <unordered_map>

namespace oomrec::tools::recording {
namespace {

// Followed by: the entries sorted by address, their rows, the key, and NUL-terminated texts.
struct Head {
  std::uint64_t format;
  std::uint64_t checksum;
  std::uint32_t entries;
  std::uint32_t lines;
  std::uint32_t key_bytes;
  std::uint32_t text_bytes;
};
struct Entry {
  std::uint64_t address;
  std::uint32_t first;  // index of its first row
  std::uint32_t count;
};
struct Row {
  std::uint32_t function;  // offset of its text
  std::uint32_t file;
  std::uint32_t line;
  std::uint32_t inlined;
};
static_assert(sizeof(Head) == 32 && sizeof(Entry) == 16 && sizeof(Row) == 16);
static_assert(offsetof(Head, entries) == SymbolCacheFile::kChecksumStart);

// "oomrsym", version 2: names of Cython and Rust are those of the source.
constexpr std::uint64_t kFormat = 0x02'6d79'7372'6d6f'6fULL;
constexpr std::uint64_t kMostAnswerBytes = std::uint64_t{1} << 16;
// Of all answers. Each text is stored once, so a small file may expand to much more.
constexpr std::uint64_t kMostBytesOfAll = std::uint64_t{1} << 29;

std::uint64_t bytes_of_answer(const std::vector<LineInfo>& lines) {
  std::uint64_t bytes = lines.size() * sizeof(Row);
  for (const LineInfo& line_info : lines) {
    bytes += line_info.function.size() + line_info.file.size();
  }
  return bytes;
}

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Stores each text once.
class Texts {
 public:
  std::uint32_t add(const std::string& text) {
    const std::string whole{text.c_str()};  // cut at a NUL, which no name contains
    const auto [at, is_new] = at_.try_emplace(whole, static_cast<std::uint32_t>(bytes_.size()));
    if (is_new) bytes_.append(whole.c_str(), whole.size() + 1);
    return at->second;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_{'\0'};
  std::unordered_map<std::string, std::uint32_t> at_{{"", 0}};
};

}  // namespace

std::uint64_t SymbolCacheFile::hash_of(std::string_view text) {
  std::uint64_t sum = text.size();
  while (!text.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = std::min(sizeof word, text.size());
    std::memcpy(&word, text.data(), count);
    sum = (sum ^ word) * 0x9e37'79b9'7f4a'7c15ULL;  // 2^64 / the golden ratio
    sum ^= sum >> 32;
    text.remove_prefix(count);
  }
  return sum;
}

SymbolCacheFile::SymbolCacheFile(std::string bytes, std::string_view key)
    : bytes_(std::move(bytes)) {
  Head head{};
  if (bytes_.size() < sizeof head) return;
  std::memcpy(&head, bytes_.data(), sizeof head);
  const std::uint64_t lines_at = sizeof head + std::uint64_t{head.entries} * sizeof(Entry);
  const std::uint64_t key_at = lines_at + std::uint64_t{head.lines} * sizeof(Row);
  const std::uint64_t text_at = key_at + head.key_bytes;
  if (head.format != kFormat || text_at + head.text_bytes != bytes_.size() ||
      head.text_bytes == 0 || bytes_.back() != '\0' ||
      head.checksum != hash_of(std::string_view{bytes_}.substr(kChecksumStart)) ||
      std::string_view{bytes_}.substr(key_at, head.key_bytes) != key) {
    return;
  }
  entries_ = head.entries;
  lines_ = head.lines;
  locations_at_ = lines_at;
  text_at_ = text_at;
}

template <class T>
T SymbolCacheFile::row(std::size_t table_at, std::size_t index) const {
  T value;
  std::memcpy(&value, bytes_.data() + table_at + index * sizeof value, sizeof value);
  return value;
}

std::optional<std::vector<LineInfo>> SymbolCacheFile::lines(std::uint32_t first,
                                                            std::uint32_t count) const {
  if (first > lines_ || count > lines_ - first || count > kMostAnswerBytes / sizeof(Row)) {
    return std::nullopt;
  }
  const std::size_t text_bytes = bytes_.size() - text_at_;
  std::vector<LineInfo> found;
  found.reserve(count);
  std::uint64_t left = kMostAnswerBytes;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const Row from = row<Row>(locations_at_, i);
    if (from.function >= text_bytes || from.file >= text_bytes) return std::nullopt;
    const char* const function = bytes_.data() + text_at_ + from.function;
    const char* const file = bytes_.data() + text_at_ + from.file;
    const std::size_t function_bytes = strnlen(function, left);
    const std::size_t file_bytes = strnlen(file, left);
    if (sizeof(Row) + function_bytes + file_bytes > left) return std::nullopt;
    left -= sizeof(Row) + function_bytes + file_bytes;
    found.push_back({{function, function_bytes}, {file, file_bytes}, from.line, from.inlined != 0});
  }
  return found;
}

std::optional<std::vector<LineInfo>> SymbolCacheFile::find(std::uint64_t address) const {
  std::size_t low = 0;
  for (std::size_t high = entries_; low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (row<Entry>(sizeof(Head), middle).address < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == entries_) return std::nullopt;
  const Entry entry = row<Entry>(sizeof(Head), low);
  return entry.address == address ? lines(entry.first, entry.count) : std::nullopt;
}

SymbolCacheFile::Answers SymbolCacheFile::all() const {
  Answers answers;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < entries_ && bytes < kMostBytesOfAll; ++i) {
    const Entry entry = row<Entry>(sizeof(Head), i);
    if (auto found = lines(entry.first, entry.count)) {
      bytes += bytes_of_answer(*found);
      answers.insert_or_assign(entry.address, std::move(*found));
    }
  }
  return answers;
}

std::string SymbolCacheFile::bytes_of(const Answers& answers, std::string_view key) {
  std::string entries;
  std::string rows;
  Texts texts;
  Head head{};
  for (const auto& [address, found] : answers) {
    if (bytes_of_answer(found) > kMostAnswerBytes) continue;
    append(entries, Entry{address, head.lines, static_cast<std::uint32_t>(found.size())});
    ++head.entries;
    for (const LineInfo& line_info : found) {
      append(rows, Row{texts.add(line_info.function), texts.add(line_info.file), line_info.line,
                       line_info.inlined ? 1U : 0U});
      ++head.lines;
    }
  }
  head.format = kFormat;
  head.key_bytes = static_cast<std::uint32_t>(key.size());
  head.text_bytes = static_cast<std::uint32_t>(texts.bytes().size());
  std::string bytes;
  append(bytes, head);
  bytes += entries;
  bytes += rows;
  bytes += key;
  bytes += texts.bytes();
  const std::uint64_t checksum = hash_of(std::string_view{bytes}.substr(kChecksumStart));
  std::memcpy(bytes.data() + offsetof(Head, checksum), &checksum, sizeof checksum);
  return bytes;
}

}  // namespace oomrec::tools::recording
