#include "tools/service/ship/shipment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <string>

#include "tools/base/error.h"
#include "tools/base/json.h"
#include "tools/base/output_file.h"
#include "tools/base/programs.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/store/lives.h"
#include "tools/bundles/store/outcome.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/symbolize/cache_directory.h"
#include "tools/service/ship/ledger.h"
#include "tools/views/export/row.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostArchiveBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostBytesADay = std::uint64_t{64} << 20;
constexpr std::size_t kMostHost = 64;

std::string host_of(const Json& row) {
  char own[256] = {};
  gethostname(own, sizeof own - 1);
  std::string host = text_of(row, "host").value_or(own).substr(0, kMostHost);
  for (char& c : host) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || (std::isalnum(byte) == 0 && c != '.' && c != '_')) c = '-';
  }
  return host;
}

// The archives of a day that were shipped or are to be.
struct Spent {
  unsigned of_signature = 0;
  std::uint64_t bytes = 0;
};
Spent spent(const Plan& plan, const std::set<fs::path>& directories) {
  Spent sum;
  for (const fs::path& directory : directories) {
    const Ledger ledger{directory};
    for (const auto& [name, arrived] : ledger.bundles()) {
      if (!arrived.plan || !arrived.plan->has_raw() || arrived.plan->day != plan.day) continue;
      sum.bytes += arrived.raw_bytes;
      if (arrived.plan->signature == plan.signature) ++sum.of_signature;
    }
  }
  return sum;
}

class Shipping {
 public:
  Shipping(const ShipSettings& settings, const std::set<fs::path>& directories, fs::path scratch)
      : settings_(settings), directories_(directories), scratch_(std::move(scratch)) {}
  ~Shipping() {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }
  Shipping(const Shipping&) = delete;
  Shipping& operator=(const Shipping&) = delete;

  PutResult ship_row(const fs::path& bundle) {
    const std::string name = bundle.filename();
    Ledger ledger{bundle.parent_path()};
    const bool is_final = !awaits_end(bundle);  // before it is read: it may end meanwhile
    const bundles::Source source = bundles::open_recorded(bundle.string(), cache_);
    Json row = parse_json(rows_.line_of(source));
    const std::string day = text_of(row, "day").value_or("");
    std::optional<Plan> plan = ledger.of(name).plan;
    if (!plan) plan = ledger.add_plan(name, plan_for(row, name));
    if (!plan) return PutResult::refused;
    const fs::path file = scratch_ / "row.json";
    write_output(file, line_of(std::move(row), *plan), IfExists::overwrite);
    // A row that is not the last one has a name of its own: no object is put twice.
    const PutResult result = settings_.put(
        fmt::format("rows/day={}/{}{}.json", day, plan->stem, is_final ? "" : "-running"), file);
    if (result != PutResult::stored) return result;
    return ledger.add_row(name, *plan, is_final) ? PutResult::stored : PutResult::refused;
  }

  PutResult ship_life(const fs::path& file) {
    std::error_code ignored;
    const std::optional<std::string> line = bundles::read_life(file);
    if (!line) {
      fs::remove(file, ignored);
      return PutResult::stored;
    }
    const Json row = parse_json(*line);
    const PutResult result =
        settings_.put(fmt::format("rows/day={}/{}-life-{}.json", text_of(row, "day").value_or(""),
                                  host_of(row), text_of(row, "death_id").value_or("")),
                      file);
    if (result == PutResult::stored) fs::remove(file, ignored);
    return result;
  }

  PutResult ship_raw(const fs::path& bundle) {
    const std::string name = bundle.filename();
    Ledger ledger{bundle.parent_path()};
    const std::optional<Plan> plan = ledger.of(name).plan;
    if (!plan) return PutResult::refused;
    const bundles::Source source = bundles::open_recorded(bundle.string(), cache_);
    const fs::path folder = scratch_ / "raw";
    fs::remove_all(folder);  // of the bundle before
    fs::create_directory(folder);
    const fs::path archive = write_archive(source, folder, plan->raw);
    const std::uint64_t bytes = fs::file_size(archive);
    if (bytes > kMostArchiveBytes || spent(*plan, directories_).bytes + bytes > kMostBytesADay) {
      remark(fmt::format("--ship: {} is left out: it has {}", plan->raw_key(), size_text(bytes)));
      return ledger.add_raw(name, 0) ? PutResult::stored : PutResult::refused;
    }
    const PutResult result = settings_.put(plan->raw_key(), archive);
    if (result != PutResult::stored) return result;
    return ledger.add_raw(name, bytes) ? PutResult::stored : PutResult::refused;
  }

 private:
  Plan plan_for(const Json& row, const std::string& name) const {
    Plan plan;
    plan.day = text_of(row, "day").value_or("");
    // The bundle's name is unique in its directory, the death's in the store.
    plan.stem = fmt::format("{}-{}-{}", host_of(row), name, text_of(row, "death_id").value_or(""));
    plan.signature = percent_encoded(text_of(row, "signature").value_or("unknown"));
    if (settings_.raw_bundles == 0) return plan;
    const Spent today = spent(plan, directories_);
    if (today.of_signature < settings_.raw_bundles && today.bytes < kMostBytesADay)
      plan.raw = archive_suffix();
    return plan;
  }

  static std::string line_of(Json row, const Plan& plan) {
    const std::string without = json_text(row);
    if (plan.has_raw()) row["raw_key"] = plan.raw_key();
    const std::string line = json_text(row);
    return (line.size() < views::kMostRowBytes ? line : without) + "\n";
  }

  const ShipSettings& settings_;
  const std::set<fs::path>& directories_;
  const fs::path scratch_;
  const std::shared_ptr<const recording::CacheDirectory> cache_ =
      recording::CacheDirectory::of_user();
  views::RowWriter rows_;
};

// `is_last_try`: gives up a bundle whose row cannot be made.
PutResult ship_one(Shipping& shipping, const Shipment& shipment, bool is_last_try) try {
  if (bundles::is_life(shipment.bundle)) return shipping.ship_life(shipment.bundle);
  return shipment.part == Shipment::Part::row ? shipping.ship_row(shipment.bundle)
                                              : shipping.ship_raw(shipment.bundle);
} catch (const std::exception& error) {
  std::error_code ignored;
  if (!fs::exists(shipment.bundle, ignored)) return PutResult::stored;  // deleted by retention
  const bool gives_up =
      is_last_try && shipment.part == Shipment::Part::row && !bundles::is_life(shipment.bundle);
  remark(fmt::format("--ship: {}: {}{}", printable(shipment.bundle.string()),
                     printable(error.what()), gives_up ? "; it is not shipped" : ""));
  const bool is_entered =
      gives_up && Ledger{shipment.bundle.parent_path()}.add_unreadable(shipment.bundle.filename());
  return is_entered ? PutResult::stored : PutResult::refused;
}

}  // namespace

bool awaits_end(const fs::path& bundle) {
  return bundles::read_file<bundles::Metadata>(bundle).outcome == bundles::kRunning;
}

int ship(const std::vector<Shipment>& shipments, const ShipSettings& settings,
         const std::set<fs::path>& directories, const fs::path& scratch, bool is_last_try) try {
  Shipping shipping{settings, directories, scratch};
  int failures = 0;
  for (const Shipment& shipment : shipments) {
    const PutResult result = ship_one(shipping, shipment, is_last_try);
    if (result != PutResult::stored) ++failures;
    if (result == PutResult::unreachable) break;
  }
  return failures;
} catch (const std::exception& error) {
  remark(fmt::format("--ship: {}", error.what()));
  return 1;
}

namespace {

void run(const std::vector<std::string>& words) {
  const ProgramResult result = run_program(words);
  if (result.exit_code != 0)
    throw Error{Exit::bad_input, fmt::format("{}: exit code {}", words.front(), result.exit_code),
                "Check the free space of TMPDIR."};
}

}  // namespace

std::string archive_suffix() {
  if (is_in_path("tar") && is_in_path("zstd")) return "tar.zst";
  if (is_in_path("tar") && is_in_path("gzip")) return "tar.gz";
  throw Error{Exit::bad_input, "bundles are shipped as archives, and tar or gzip is not in PATH",
              "Install tar and zstd, or ship rows only: --ship-raw 0"};
}

fs::path write_archive(const bundles::Source& source, const fs::path& directory,
                       const std::string& suffix) {
  const std::string name = source.bundle.filename();
  const std::string archive = (directory / name).string() + ".tar";
  bundles::write_redacted(source, directory / name);
  run({"tar", "-C", directory.string(), "-cf", archive, name});
  if (suffix == "tar.zst")
    run({"zstd", "-q", "-f", archive, "-o", archive + ".zst"});
  else
    run({"gzip", "-n", "-f", archive});
  return directory / fmt::format("{}.{}", name, suffix);
}

}  // namespace oomrec::tools::service
