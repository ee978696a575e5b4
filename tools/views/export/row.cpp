#include "tools/views/export/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/session/layout.h"
#include "common/text/frames.h"
#include "common/text/text.h"
#include "common/verdict/kinds.h"
#include "common/verdict/user_killers.h"
#include "common/verdict/verdict.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/holders.h"
#include "tools/bundles/signature/signature.h"
#include "tools/bundles/store/trigger.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/reading/script.h"
#include "tools/views/export/format.h"
#include "tools/views/export/row_history.h"

namespace oomrec::tools::views {
namespace {

using bundles::Holder;
using bundles::Source;

constexpr unsigned kSchemaVersion = 1;
constexpr std::size_t kMostTextBytes = 200;
constexpr std::size_t kMostSummaryBytes = 600;
constexpr std::size_t kMostGpus = 16;

// What a row holds of each kind. The first that fits is taken.
struct Bounds {
  std::size_t frames, holders, moments, labels;
};
constexpr Bounds kBounds[] = {{bundles::kMostFrames, bundles::kMostHolders, 60, 32},
                              {16, bundles::kMostHolders, 60, 32},
                              {12, 12, 40, 32},
                              {8, 8, 30, 16},
                              {4, 6, 20, 8},
                              {3, 3, 10, 4}};

Json text_json(std::string_view text, std::size_t most = kMostTextBytes) {
  return text_or_null(printable_prefix(text, most));
}

// A figure without digits that mean nothing.
Json figure(double value) {
  constexpr double kDigits = 6;
  if (value == 0 || !std::isfinite(value)) return 0.0;
  const double unit = std::pow(10, kDigits - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

Json frames_json(const bundles::Frames& all, std::size_t most) {
  Json frames = Json::array();
  for (const auto& one : bundles::selected(all, most)) {
    const bundles::Frame& frame = *one;
    frames.push_back({{"kind", frame.python   ? "python"
                               : frame.script ? "script"
                                              : "native"},
                      {"function", text_or_null(frame.function)},
                      {"file", text_or_null(frame.file)},
                      {"line", number_or_null(frame.line)},
                      {"module", text_or_null(frame.module)},
                      {"build_id", text_or_null(frame.build_id)},
                      {"offset", number_or_null(frame.offset)},
                      {"own", frame.own}});
  }
  return frames;
}

Json holders_json(const std::vector<Holder>& all, std::size_t most_frames) {
  Json holders = Json::array();
  for (const Holder& holder : all) {
    holders.push_back({{"space", name_of(holder.space)},
                       {"device", text_or_null(holder.device)},
                       {"bytes", holder.bytes},
                       {"resident_bytes", holder.resident_bytes},
                       {"count", holder.count},
                       {"estimated", holder.estimated},
                       {"sig", text_or_null(bundles::path_key(holder.frames))},
                       {"frames", frames_json(holder.frames, most_frames)}});
  }
  return holders;
}

Json gpus_json(const Source& source) {
  Json gpus = Json::array();
  for (const recording::DeviceFigures& device :
       recording::devices_of(*source.recording, source.failure())) {
    if (gpus.size() == kMostGpus) break;
    const auto& sample = device.driver_sample;
    gpus.push_back({{"device", device.label},
                    {"held", device.held_bytes},
                    {"used", sample ? Json(sample->total_bytes -
                                           std::min(sample->free_bytes, sample->total_bytes))
                                    : Json(nullptr)},
                    {"total", sample ? Json(sample->total_bytes) : Json(nullptr)},
                    {"others", sample ? Json(device.others_bytes()) : Json(nullptr)},
                    {"fragmentation",
                     device.torch ? figure(device.torch->fragmentation_ratio()) : Json(nullptr)}});
  }
  return gpus;
}

// Who ended the process.
std::string_view ended_by(const Source& source, const verdict::Verdict& verdict) {
  using session::UserKiller;
  if (verdict::kind_of(verdict.code).cause == verdict::Cause::kernel) return "kernel";
  const session::EndLevels& levels =
      source.ending ? source.ending->evidence.levels : source.recording->header().end_levels;
  const auto killer = static_cast<UserKiller>(levels.user_killer);
  for (const verdict::UserKillerRow& daemon : verdict::kUserKillers)
    if (daemon.killer == killer) return daemon.name;
  if (killer == UserKiller::informant || killer == UserKiller::other_reason) {
    const std::string_view line{levels.user_killer_line,
                                strnlen(levels.user_killer_line, sizeof levels.user_killer_line)};
    return line.substr(0, line.find(": "));
  }
  const bool by_parent =
      killer == UserKiller::parent || verdict.code == VerdictCode::terminated_by_parent;
  return by_parent ? "parent" : "";
}

// The bundle is written before the process exits, and does not say with which code. One that no
// request failed, and that recovered from the bundle, has ended by itself.
bool is_dump_of_good_end(const Source& source, const std::string& outcome) {
  return source.reason() == verdict::kReasonAtExit &&
         source.recording->header().failures_total.load() == 0 &&
         outcome == name_of(OutcomeKind::recovered);
}

std::string_view kind_of(const Source& source, const verdict::Verdict& verdict,
                         const std::string& outcome) {
  if (is_dump_of_good_end(source, outcome)) return "life";
  if (verdict::kind_of(verdict.code).cause == verdict::Cause::alive) return "warning";
  const bool goes_on =
      outcome == name_of(OutcomeKind::running) || outcome == name_of(OutcomeKind::recovered);
  return goes_on ? "failure" : "death";
}

// An end that is known later outranks the guesses before it.
unsigned revision_of(const std::string& outcome) {
  if (outcome == name_of(OutcomeKind::running)) return 0;
  if (outcome == name_of(OutcomeKind::recovered)) return 1;
  return outcome == name_of(OutcomeKind::unknown) ? 2 : 3;
}

// What the user gave as the reason of a dump is no part of a row.
std::string_view summary_of(const Source& source, const verdict::Verdict& verdict) {
  const bool has_text =
      verdict.code == VerdictCode::requested && source.reason() != verdict::kReasonAtExit;
  return has_text ? "bundle requested" : std::string_view{verdict.summary};
}

std::uint64_t resident_at_end(const Source& source) {
  const session::Header& header = source.recording->header();
  const session::EndLevels& levels =
      source.ending ? source.ending->evidence.levels : header.end_levels;
  const session::CgroupAccount& account =
      source.ending ? source.ending->evidence.account : header.account;
  if (account.is_own_at_kill()) return account.own_bytes();
  return levels.resident_bytes != 0 ? levels.resident_bytes : header.health.rss_bytes.load();
}

// The stack that the group and the label of the row are of: of the failed request, else of the
// largest holder.
std::uint32_t subject_node(const Source& source) {
  const bundles::FailureDetails failed{source};
  if (failed.exists) return failed.failure.node;
  const std::vector<recording::HolderFigures> holders = source.recording->holders();
  const auto largest = std::ranges::max_element(holders, [](const auto& a, const auto& b) {
    const bool counts = is_additive(b.space), counted = is_additive(a.space);
    return counted != counts ? counts : a.weight_bytes() < b.weight_bytes();
  });
  return largest == holders.end() ? 0 : largest->node;
}

class Row {
 public:
  Row(const Source& source, std::string id, std::string episode_id, std::string_view episode_role)
      : source_(source),
        header_(source.recording->header()),
        verdict_(source.verdict()),
        outcome_(source.outcome()),
        kind_(kind_of(source, verdict_, outcome_)),
        labels_(source),
        history_(*source.recording, bundles::subject_device(source) != 0),
        holders_(bundles::holders_of(source)),
        request_(bundles::request_of(source)),
        id_(std::move(id)),
        episode_id_(std::move(episode_id)),
        episode_role_(episode_role) {}

  Row(const Source& source, const Life& life)
      : source_(source),
        header_(source.recording->header()),
        life_(&life),
        outcome_(kExitedWell),
        kind_("life"),
        labels_(source),
        history_(*source.recording, false),
        id_(bundles::death_id(header_, 0)) {}

  std::string line() const {
    std::string line;
    for (const Bounds& bounds : kBounds) {
      line = json_text(json(bounds));
      if (line.size() < kMostRowBytes) break;
    }
    return line;
  }

 private:
  Json json(const Bounds& bounds) const {
    Json row = Json::object();
    write_identity(row);
    write_place(row, bounds);
    write_verdict(row);
    write_memory(row);
    write_time(row, bounds);
    write_cause(row, bounds);
    return row;
  }

  void write_identity(Json& row) const {
    const std::string time =
        history_.end_realtime_ns() != 0
            ? time_text(history_.end_realtime_ns())
            : (source_.manifest.created_at_utc.empty() ? time_text(0)
                                                       : source_.manifest.created_at_utc);
    row["schema_version"] = kSchemaVersion;
    row["oomrec_version"] = OOMREC_VERSION;
    row["death_id"] = id_;
    row["revision"] = revision_of(outcome_);
    row["kind"] = kind_;
    row["time"] = time;
    row["day"] = time.substr(0, time.find('T'));
    row["episode_id"] = text_or_null(episode_id_);
    row["episode_role"] = text_or_null(episode_role_);
  }

  void write_place(Json& row, const Bounds& bounds) const {
    const std::string host{header_.host, strnlen(header_.host, sizeof header_.host)};
    const std::string program = source_.recording->text(program_of(header_));
    const std::string job = source_.recording->text(header_.rank.job);
    const std::string script = recording::script_of(*source_.recording);
    row["host"] = text_json(host.empty() ? labels_.column("host") : host);
    for (const char* column : {"service", "release", "namespace", "pod", "container", "image"})
      row[column] = text_json(labels_.column(column));
    row["job"] = text_json(job.empty() ? labels_.column("job") : job);
    row["task"] = text_json(labels_.column("task"));
    write_rank(row);
    row["attempt"] = parse_number<std::uint32_t>(labels_.column("attempt"));
    row["labels"] = labels_.others(bounds.labels);
    row["program"] = text_json(text::base_name(program));
    row["script"] = text_json(text::base_name(script));
  }

  // Of a redacted bundle the manifest has them, too.
  void write_rank(Json& row) const {
    const bool is_known = header_.rank.known != 0;
    const auto& stored = source_.manifest;
    const std::uint32_t rank = is_known ? header_.rank.rank : stored.rank.value_or(0);
    const std::uint32_t world_size =
        is_known ? header_.rank.world_size : stored.world_size.value_or(0);
    const bool is_rank = rank < world_size;
    row["rank"] = is_rank ? Json(rank) : Json(nullptr);
    row["world_size"] = is_rank ? Json(world_size) : Json(nullptr);
  }

  void write_verdict(Json& row) const {
    row["outcome"] = outcome_;
    for (const char* column : {"verdict", "certainty", "trigger", "summary", "ended_by"})
      row[column] = nullptr;
    if (life_ != nullptr) return;
    const Trigger trigger = source_.trigger();
    row["verdict"] = name_of(verdict_.code);
    if (verdict_.has_certainty()) row["certainty"] = name_of(verdict_.certainty);
    if (trigger != Trigger::none) row["trigger"] = name_of(trigger);
    row["summary"] = text_json(summary_of(source_, verdict_), kMostSummaryBytes);
    row["ended_by"] = text_json(ended_by(source_, verdict_));
  }

  void write_memory(Json& row) const {
    const std::uint64_t resident = resident_at_end(source_);
    const std::uint64_t peak =
        std::max({resident, history_.most_resident_bytes(), header_.end_levels.resident_peak_bytes,
                  life_ != nullptr ? life_->resident_peak_bytes : 0});
    const std::uint64_t used = verdict_.limit.is_in_bytes() ? verdict_.limit.used_bytes : 0;
    const std::uint64_t cgroup_limit = header_.health.cgroup_limit_bytes;
    row["limit_kind"] =
        verdict_.limit.kind != LimitKind::none ? Json(name_of(verdict_.limit.kind)) : Json(nullptr);
    row["limit_bytes"] = number_or_null(verdict_.limit.is_in_bytes() ? verdict_.limit.bytes : 0);
    row["used_bytes"] = number_or_null(used);
    row["peak_bytes"] = number_or_null(peak);
    row["rss_bytes"] = number_or_null(resident);
    row["cgroup_limit_bytes"] =
        number_or_null(cgroup_limit != session::kUnlimited ? cgroup_limit : 0);
    row["node_bytes"] = number_or_null(header_.ram_bytes);
    // Of a GPU's memory if that failed it.
    const bool is_of_device = life_ == nullptr && bundles::subject_device(source_) != 0;
    const std::uint64_t held = is_of_device ? used : std::max(peak, used);
    const std::uint64_t refused = request_ ? request_->bytes : 0;
    const bool fits = refused <= ~std::uint64_t{0} - held;
    row["need_bytes"] = number_or_null(held != 0 && fits ? held + refused : held);
    row["need_is_bound"] = kind_ != "life";
  }

  void write_time(Json& row, const Bounds& bounds) const {
    const double seconds = history_.run_seconds();
    row["started"] =
        header_.start_realtime_ns != 0 ? Json(time_text(header_.start_realtime_ns)) : Json(nullptr);
    row["run_seconds"] = seconds != 0 ? figure(seconds) : Json(nullptr);
    row["lost_gib_hours"] = figure(history_.lost_gib_hours());
    const auto growth = history_.bytes_per_second();
    row["growth_bytes_per_s"] = growth ? figure(*growth) : Json(nullptr);
    history_.write_timeline(row, life_ != nullptr ? 0 : bounds.moments);
  }

  // The signature is that of the holders that are left.
  void write_cause(Json& row, const Bounds& bounds) const {
    for (const char* column : {"signature_alias", "life_weight", "raw_key", "raw_bytes"})
      row[column] = nullptr;
    if (life_ != nullptr) {
      write_signature(row, {});
      for (const char* column : {"cause", "thread_group", "label", "request"})
        row[column] = nullptr;
      for (const char* column : {"holders", "gpu"}) row[column] = Json::array();
      row["life_weight"] = figure(life_->weight);
      return;
    }
    const std::vector<Holder> holders = bundles::with_rest(holders_, bounds.holders);
    const bundles::Signature signature =
        bundles::signature_of(holders, request_, labels_.column("service"));
    const std::uint32_t node = subject_node(source_);
    write_signature(row, signature);
    row["cause"] = text_or_null(cause_of(signature));
    row["thread_group"] = text_json(group_of(source_.recording->view(), node));
    row["label"] = text_json(text::label_of(source_.recording->view(), node));
    row["request"] = request_json(bounds);
    row["holders"] = holders_json(holders, bounds.frames);
    row["gpu"] = gpus_json(source_);
  }

  std::string_view cause_of(const bundles::Signature& signature) const {
    if (kind_ == "life" || verdict::kind_of(verdict_.code).cause < verdict::Cause::refused)
      return {};
    if (signature.is_request) return "giant_request";
    const Growth growth = history_.growth();
    if (growth == Growth::unknown) return {};
    return growth == Growth::steady ? "leak" : "limit_too_low";
  }

  Json request_json(const Bounds& bounds) const {
    const bundles::FailureDetails details{source_};
    if (!details.exists || !request_) return nullptr;
    const session::Failure& failure = details.failure;
    return {{"api", name_of(static_cast<Api>(failure.api))},
            {"size", failure.bytes},
            {"space", name_of(static_cast<Space>(failure.space))},
            {"device",
             text_or_null(recording::device_label(*source_.recording, failure.device.device))},
            {"error", text_json(details.error())},
            {"frames", frames_json(request_->frames, bounds.frames)}};
  }

  const Source& source_;
  const session::Header& header_;
  const Life* life_ = nullptr;  // null: a death, or a dump at the end
  verdict::Verdict verdict_{};
  std::string outcome_;
  std::string_view kind_;
  bundles::Labels labels_;
  RowHistory history_;
  std::vector<Holder> holders_;
  std::optional<bundles::Request> request_;
  std::string id_, episode_id_;
  std::string_view episode_role_;
};

}  // namespace

const std::vector<bundles::BundleSummary>& RowWriter::bundles_in(
    const std::filesystem::path& directory) {
  const auto [at, is_new] = directories_.try_emplace(directory);
  if (is_new) at->second = bundles::bundles_in({directory});
  return at->second;
}

std::string RowWriter::line_of(const Source& source) {
  if (!source.imported_from.empty())
    throw Error{Exit::bad_input, fmt::format("a {} is no death", source.imported_from),
                "Give bundles of oomrec."};
  const std::string id =
      bundles::death_id(source.recording->header(), source.manifest.process_bundle);
  std::string episode, role;
  if (!source.bundle.empty()) {
    const std::vector<bundles::BundleSummary>& all = bundles_in(source.bundle.parent_path());
    const auto own = std::ranges::find_if(
        all, [&](const bundles::BundleSummary& bundle) { return bundle.path == source.bundle; });
    const bool is_root = own == all.end() || own->episode.role == bundle::EpisodeRole::root;
    episode = is_root ? id : all[own->episode.root].death_id;
    role = is_root ? name_of(bundle::EpisodeRole::root) : "follower";
  }
  std::string line = Row{source, id, episode, role}.line();
  constexpr std::size_t kMostModules = 100;  // each has up to two files open
  if (open_modules_.size() > kMostModules) open_modules_.clear();
  open_modules_ = recording::CachedSymbols::all_open();
  return line;
}

void write_signature(Json& row, const bundles::Signature& signature) {
  Json also = Json::array();
  for (const std::string& key : signature.also) also.push_back(key);
  row["signature"] = text_or_null(signature.key);
  row["signature_version"] = bundles::kSignatureVersion;
  row["signature_coarse"] = text_or_null(signature.coarse);
  row["signature_also"] = std::move(also);
  row["title"] = text_or_null(signature.title);
  row["top_share"] = signature.key.empty() ? Json(nullptr) : figure(signature.top_share);
}

std::string life_line(const Source& source, const Life& life) { return Row{source, life}.line(); }

void write_row(const ExportRequest& request, Output& output) {
  output.write(RowWriter{}.line_of(request.source) + "\n");
}

}  // namespace oomrec::tools::views
