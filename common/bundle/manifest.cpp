// Writes manifest.json, last, so a bundle that has one is complete; reads it.
#include "common/bundle/manifest.h"

#include "common/bundle/files.h"
#include "common/bundle/session_summary.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

std::string_view reduction_word(Reduction reduction) noexcept {
  constexpr std::string_view kWords[] = {
      {}, "without_events", "largest_stacks", "without_checkpoints"};
  return kWords[static_cast<std::size_t>(reduction)];
}

}  // namespace

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

void write_file_names(text::JsonWriter& json, ObjectsFile objects) noexcept {
  json.begin_array(text::JsonLayout::one_line);
  for (const char* const name : kFileNames) json.string(name);
  if (objects == ObjectsFile::present) json.string(text::kObjectsFile);
  json.end_array();
}

void write_certainty(text::JsonWriter& json, const verdict::Verdict& verdict) noexcept {
  verdict.has_certainty() ? json.string(name_of(verdict.certainty)) : json.null();
}

bool write_manifest(InHook hook, Job& job) noexcept {
  const session::Header& header = job.view.header();
  const std::uint64_t number = job.cause.number != 0
                                   ? job.cause.number
                                   : header.bundles_written.load(std::memory_order_relaxed) + 1;
  char key[96];
  JsonFile file{hook, job, "manifest.json"};
  text::JsonWriter& json = file.json();
  json.begin_object();
  json.key("schema_version").number(2);
  json.key("bundle_name").string(job.work.name);
  json.key("created_at_utc").utc(job.created_ns);
  json.key("reason").string(name_of(job.cause.trigger));
  json.key("backend").string(backend_of(job));
  json.key("event_count").number(job.event_count);
  json.key("files");
  write_file_names(json, objects_file_of(job));
  json.key("oomrec_version").string(OOMREC_VERSION);
  json.key("verdict").string(name_of(job.work.verdict.code));
  json.key("certainty");
  write_certainty(json, job.work.verdict);
  json.key("program").string_or_null(text::base_name(job.view.string(program_of(header))));
  json.key("pid").signed_number(header.pid);
  json.key("process").string(process_key(header, key));
  json.key("process_bundle").number(number);
  json.key("process_started_at_utc").utc(header.start_realtime_ns);
  json.key("process_tree").string(job.tree);
  json.key("follows").string_or_null(job.cause.child != nullptr ? job.cause.child->bundle : "");
  const auto number_or_null = [&](std::uint32_t value) noexcept {
    header.rank.known != 0 ? json.number(value) : json.null();
  };
  json.key("rank"), number_or_null(header.rank.rank);
  json.key("local_rank"), number_or_null(header.rank.local_rank);
  json.key("world_size"), number_or_null(header.rank.world_size);
  json.key("job_id").string_or_null(job.view.string(header.rank.job));
  json.key("reduced").string_or_null(reduction_word(job.reduction));
  json.end_object();
  return file.done();
}

namespace {

std::uint64_t hash_of(std::string_view text) noexcept {  // FNV-1a; 0 for an absent one
  if (text.empty() || text == "null") return 0;
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

std::string_view manifest_value(std::string_view manifest, std::string_view key) noexcept {
  char quoted[48];
  const text::Text pattern = text::Text{quoted}.add('"').add(key).add("\":");
  const auto at = manifest.find(pattern.view());
  if (at == std::string_view::npos) return {};
  std::string_view rest = manifest.substr(at + pattern.view().size());
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\n')) rest.remove_prefix(1);
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    return rest.substr(0, rest.find('"'));
  }
  return rest.substr(0, rest.find_first_of(",}\n "));
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

EpisodeBundle episode_bundle(std::string_view name, std::string_view manifest) noexcept {
  const auto value = [&](std::string_view key) { return manifest_value(manifest, key); };
  const std::string_view process = value("process");
  const std::string_view follows = value("follows");
  EpisodeBundle bundle{};
  bundle.name = hash_of(name);
  bundle.follows = hash_of(follows.substr(follows.rfind('/') + 1));
  bundle.machine = hash_of(process.substr(0, process.find('-')));
  bundle.process = hash_of(process);
  bundle.tree = hash_of(value("process_tree"));
  bundle.created_s = seconds_of(value("created_at_utc"));
  bundle.started_s = seconds_of(value("process_started_at_utc"));
  bundle.number = static_cast<std::uint32_t>(number_in(name.substr(name.rfind('_') + 1)));
  bundle.process_bundle = static_cast<std::uint32_t>(number_in(value("process_bundle")));
  bundle.verdict =
      value_named<VerdictCode>(kVerdictNames, value("verdict")).value_or(VerdictCode::unknown);
  bundle.trigger = value_named<Trigger>(kTriggerNames, value("reason")).value_or(Trigger::none);
  return bundle;
}

}  // namespace oomrec::bundle
