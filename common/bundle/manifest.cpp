// Writes manifest.json, last, so a bundle that has one is complete; reads it.
#include "common/bundle/manifest.h"

#include "common/bundle/files.h"
#include "common/bundle/session_summary.h"
#include "common/facts/writer.h"
#include "common/text/text.h"

namespace oomrec::bundle {
std::string_view process_key(const session::Header& header, std::span<char> buffer) noexcept {
  return process_key(header, header.pid, header.start_ticks, buffer);
}

std::string_view process_key(const session::Header& header, std::int32_t pid,
                             std::uint64_t start_ticks, std::span<char> buffer) noexcept {
  text::Text key{buffer.data(), buffer.size()};
  for (const auto byte : header.boot_id) {
    key.add("0123456789abcdef"[byte >> 4]);
    key.add("0123456789abcdef"[byte & 15]);
  }
  return key.add('-').signed_number(pid).add('-').number(start_ticks).view();
}

void FileNames::write(text::JsonWriter& json) const noexcept {
  json.begin_array(text::JsonLayout::one_line);
  for (const char* const name : kFileNames) json.string(name);
  if (objects == ObjectsFile::present) json.string(text::kObjectsFile);
  json.end_array();
}

std::string_view certainty_word(const verdict::Verdict& verdict) noexcept {
  return verdict.has_certainty() ? name_of(verdict.certainty) : std::string_view{};
}

bool write_manifest(InHook hook, Job& job) noexcept {
  const session::Header& header = job.view.header();
  const session::Rank& rank = header.rank;
  char created[32], started[32], key[96];
  const auto if_rank = [&](std::uint32_t value) noexcept {
    return rank.known != 0 ? std::optional{value} : std::nullopt;
  };
  const facts::Manifest<std::string_view, FileNames> manifest{
      .bundle_name = job.work.name,
      .created_at_utc = text::Text{created}.utc(job.created_ns).view(),
      .reason = name_of(job.cause.trigger),
      .backend = backend_of(job),
      .event_count = job.event_count,
      .files = {objects_file_of(job)},
      .oomrec_version = OOMREC_VERSION,
      .verdict = name_of(job.work.verdict.code),
      .certainty = certainty_word(job.work.verdict),
      .program = text::base_name(job.view.string(program_of(header))),
      .pid = header.pid,
      .process = process_key(header, key),
      .process_bundle = job.cause.number != 0
                            ? job.cause.number
                            : header.bundles_written.load(std::memory_order_relaxed) + 1,
      .process_started_at_utc = text::Text{started}.utc(header.start_realtime_ns).view(),
      .process_tree = job.tree,
      .follows = job.cause.child != nullptr ? job.cause.child->bundle : std::string_view{},
      .rank = if_rank(rank.rank),
      .local_rank = if_rank(rank.local_rank),
      .world_size = if_rank(rank.world_size),
      .job_id = job.view.string(rank.job),
      .reduced = facts::kReductionNames[static_cast<std::size_t>(job.reduction)],
  };
  JsonFile file{hook, job, "manifest.json"};
  facts::write(file.json(), manifest);
  return file.done();
}

namespace {

std::uint64_t hash_of(std::string_view text) noexcept {  // FNV-1a; 0 for an absent one
  if (text.empty()) return 0;
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// Of the leading digits.
std::uint64_t number_in(std::string_view text) noexcept {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// Days since 1970 of a date in the Gregorian calendar.
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) noexcept {
  const std::int64_t from_march = month > 2 ? month - 3 : month + 9;
  const std::int64_t y = month > 2 ? year : year - 1;
  const std::int64_t leap_days = y / 4 - y / 100 + y / 400;
  constexpr std::int64_t kBefore1970 = 719'468;  // from 1 March of the year 0
  return y * 365 + leap_days + (153 * from_march + 2) / 5 + day - 1 - kBefore1970;
}

}  // namespace

std::string_view value_in(std::string_view text, std::string_view key) noexcept {
  char quoted[48];
  const text::Text pattern = text::Text{quoted}.add('"').add(key).add("\":");
  const auto at = text.find(pattern.view());
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + pattern.view().size());
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\n')) rest.remove_prefix(1);
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    return rest.substr(0, rest.find('"'));
  }
  const std::string_view value = rest.substr(0, rest.find_first_of(",}\n "));
  return value == "null" ? std::string_view{} : value;
}

namespace {

// Reads texts and numbers of a described file from its text.
class TextReader {
 public:
  explicit TextReader(std::string_view text) noexcept : text_(text) {}

  void field(std::string_view key, auto&& value, std::string_view /*meaning*/) const noexcept {
    read(value_in(text_, key), value);
  }

 private:
  static void read(std::string_view value, std::string_view& text) noexcept { text = value; }
  static void read(std::string_view value, facts::TextOrNull<std::string_view> text) noexcept {
    text.text = value;
  }
  template <std::integral Number>
  static void read(std::string_view value, Number& number) noexcept {
    number = static_cast<Number>(number_in(value));
  }
  template <class Number>
  static void read(std::string_view value, std::optional<Number>& number) noexcept {
    if (!value.empty()) number = static_cast<Number>(number_in(value));
  }
  static void read(std::string_view, NoFileNames) noexcept {}

  const std::string_view text_;
};

}  // namespace

ManifestText manifest_in(std::string_view text) noexcept {
  ManifestText manifest;
  TextReader reader{text};
  facts::Section<ManifestText>::describe(reader, manifest);
  return manifest;
}

std::uint64_t seconds_of(std::string_view utc) noexcept {
  constexpr std::string_view kShape = "0000-00-00T00:00:00Z";
  if (utc.size() != kShape.size()) return 0;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool is_digit = utc[i] >= '0' && utc[i] <= '9';
    if (kShape[i] == '0' ? !is_digit : utc[i] != kShape[i]) return 0;
  }
  const auto part = [&](std::size_t at, std::size_t digits) {
    return static_cast<std::int64_t>(number_in(utc.substr(at, digits)));
  };
  const std::int64_t seconds = days_of(part(0, 4), part(5, 2), part(8, 2)) * 86'400 +
                               part(11, 2) * 3600 + part(14, 2) * 60 + part(17, 2);
  return seconds > 0 ? static_cast<std::uint64_t>(seconds) : 0;
}

EpisodeBundle episode_bundle(std::string_view name, const ManifestText& manifest) noexcept {
  EpisodeBundle bundle{};
  bundle.name = hash_of(name);
  bundle.follows = hash_of(manifest.follows.substr(manifest.follows.rfind('/') + 1));
  bundle.machine = hash_of(manifest.process.substr(0, manifest.process.find('-')));
  bundle.process = hash_of(manifest.process);
  bundle.tree = hash_of(manifest.process_tree);
  bundle.created_s = seconds_of(manifest.created_at_utc);
  bundle.started_s = seconds_of(manifest.process_started_at_utc);
  bundle.number = static_cast<std::uint32_t>(number_in(name.substr(name.rfind('_') + 1)));
  bundle.process_bundle = static_cast<std::uint32_t>(manifest.process_bundle);
  bundle.verdict =
      value_named<VerdictCode>(kVerdictNames, manifest.verdict).value_or(VerdictCode::unknown);
  bundle.trigger = value_named<Trigger>(kTriggerNames, manifest.reason).value_or(Trigger::none);
  return bundle;
}

}  // namespace oomrec::bundle
