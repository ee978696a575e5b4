// manifest.json: what listings and retention need. Written last, so a bundle that has one is
// complete.
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

}  // namespace oomrec::bundle
