// Telemetry: strict version 2, files that grow, ranks. tests/telemetry_corpus has the formats of
// files and the other versions.
#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>

#include "tests/unit/scratch_directory.h"
#include "tools/base/csv.h"
#include "tools/base/error.h"
#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/fields.h"
#include "tools/formats/telemetry/load.h"
#include "tools/formats/telemetry/records.h"

using namespace oomrec::tools;

namespace {

Json whole_event() {
  formats::TelemetryEvent event;
  event.timestamp_ns = 1'700'000'000'123'456'789;
  event.pid = 4711;
  event.host = "node";
  event.device_id = 1;
  event.allocated_bytes = 101;
  event.reserved_bytes = 211;
  event.inactive_bytes = 110;
  event.change_bytes = -7;
  event.used_bytes = 307;
  event.free_bytes = 93;
  event.total_bytes = 400;
  event.context = "epoch 3, \"last\"\nline";
  event.metadata = {{"mode", "exact"}};
  event.rank = 1;
  event.local_rank = 0;
  event.world_size = 4;
  event.job_id = "job";
  return formats::event_json(event);
}

std::string problem_of(const Json& record) {
  try {
    formats::event_of(record);
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
  return "";
}

Json with(const char* key, const Json& value) {
  Json record = whole_event();
  record[key] = value;
  return record;
}

Json without(const char* key) {
  Json record = whole_event();
  record.erase(key);
  return record;
}

formats::Variables variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto at = values.find(std::string{name});
    return at != values.end() ? std::optional{at->second} : std::nullopt;
  };
}

class File {
 public:
  File(const char* name, const std::string& text)
      : path_(std::filesystem::path{directory_.path()} / name) {
    std::ofstream{path_} << text;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  oomrec::tests::ScratchDirectory directory_;
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("an event survives writing and reading") {
  const Json written = whole_event();
  CHECK(written.size() == 22);
  CHECK(formats::event_json(formats::event_of(written)) == written);
  formats::TelemetryEvent small;
  const Json least = formats::event_json(small);
  CHECK(least.size() == 22);
  CHECK(least["context"].is_null());
  CHECK(least["job_id"].is_null());
  CHECK(least["rank"] == 0);
  CHECK(least["local_rank"] == 0);
  CHECK(least["world_size"] == 1);
  CHECK(formats::event_json(formats::event_of(least)) == least);
}

TEST_CASE("a rank without the rest of its job is written so that it can be read") {
  formats::TelemetryEvent event;
  event.rank = 5;
  const Json record = formats::event_json(event);
  CHECK(record["local_rank"] == 5);
  CHECK(record["world_size"] == 6);
  CHECK(formats::event_json(formats::event_of(record)) == record);
  Json last = without("world_size");
  last["rank"] = std::numeric_limits<std::int64_t>::max();  // no world is larger
  CHECK(problem_of(last) == "rank is not less than world_size");
}

TEST_CASE("every key of version 2 is required, except those of the rank") {
  std::size_t required = 0;
  const Json record = whole_event();
  for (const auto& [key, value] : record.items()) {
    const bool of_rank =
        key == "rank" || key == "local_rank" || key == "world_size" || key == "job_id";
    if (key == "schema_version") continue;  // without it, it is version 1
    if (!of_rank) CHECK(problem_of(without(key.c_str())) == key + " is missing");
    if (of_rank && key != "world_size") CHECK(problem_of(without(key.c_str())) == "");
    required += !of_rank;
  }
  CHECK(required == 17);
  CHECK(problem_of(with("surplus", 1)) == "surplus is not a key of version 2");
}

TEST_CASE("values of the wrong type or below their minimum are rejected") {
  CHECK(problem_of(with("timestamp_ns", -1)) == "timestamp_ns is -1, less than 0");
  CHECK(problem_of(with("timestamp_ns", 1.5)) == "timestamp_ns is not an integer: 1.5");
  CHECK(problem_of(with("pid", true)) == "pid is not an integer: true");
  CHECK(problem_of(with("pid", -1)) == "");
  CHECK(problem_of(with("pid", -2)) != "");
  CHECK(problem_of(with("device_id", -1)) == "");
  CHECK(problem_of(with("device_id", -2)) != "");
  CHECK(problem_of(with("allocator_allocated_bytes", -1)) != "");
  CHECK(problem_of(with("allocator_allocated_bytes", nullptr)) != "");
  CHECK(problem_of(with("allocator_allocated_bytes", 18446744073709551615u)) != "");
  CHECK(problem_of(with("allocator_change_bytes", -5)) == "");
  CHECK(problem_of(with("allocator_active_bytes", nullptr)) == "");
  CHECK(problem_of(with("allocator_active_bytes", false)) != "");
  CHECK(problem_of(with("device_free_bytes", nullptr)) == "");
  CHECK(problem_of(with("host", nullptr)) == "host is not text: null");
  CHECK(problem_of(with("context", nullptr)) == "");
  CHECK(problem_of(with("context", 5)) != "");
  CHECK(problem_of(with("metadata", nullptr)) == "metadata is not an object: null");
  CHECK(problem_of(with("job_id", nullptr)) == "");
  CHECK(problem_of(with("rank", nullptr)) != "");
  CHECK(problem_of(Json::array()) == "it is not an object");
}

TEST_CASE("contradictory values are rejected") {
  CHECK(problem_of(with("device_used_bytes", 401)) ==
        "device_used_bytes is more than device_total_bytes");
  CHECK(problem_of(with("device_free_bytes", 401)) ==
        "device_free_bytes is more than device_total_bytes");
  CHECK(problem_of(with("rank", 4)) == "rank is not less than world_size");
  CHECK(problem_of(with("local_rank", 4)) == "local_rank is not less than world_size");
  CHECK(problem_of(with("world_size", 0)) != "");
}

TEST_CASE("other versions are errors; a record without one is version 1") {
  CHECK(problem_of(with("schema_version", 3)) != "");
  CHECK(problem_of(with("schema_version", 1)) != "");
  CHECK(problem_of(with("schema_version", "2")) != "");
  CHECK(problem_of(with("schema_version", true)) != "");
  CHECK(problem_of(with("schema_version", nullptr)) != "");
  const formats::TelemetryEvent event =
      formats::event_of({{"timestamp", 12.5}, {"memory_allocated", 101}});
  CHECK(event.timestamp_ns == 12'500'000'000);
  CHECK(event.event_type == "sample");
  CHECK(event.pid == -1);
  CHECK(event.host == "unknown");
  CHECK(event.device_id == -1);
  CHECK(event.allocated_bytes == 101);
  CHECK(event.reserved_bytes == 101);
  CHECK(event.used_bytes == 101);
  CHECK(event.change_bytes == 0);
  CHECK(!event.total_bytes);
  CHECK(!event.free_bytes);
  CHECK(problem_of({{"memory_allocated", 101}}) != "");
  CHECK(problem_of(formats::event_json(event)) == "");
}

TEST_CASE("events are sorted by time only if they are loaded from a file") {
  const std::string text = R"([{"timestamp": 2, "allocated": 5}, {"timestamp": 1}])";
  CHECK(formats::telemetry_in(text).events[0].timestamp_ns == 2'000'000'000);
  CHECK(formats::load_telemetry(File{"a.json", text}.path()).events[0].timestamp_ns ==
        1'000'000'000);
  CHECK_THROWS_AS(formats::load_telemetry("/nowhere"), formats::UnreadTelemetry);
}

TEST_CASE("a list may be under any key, and version 1 may be rejected") {
  const std::string text = R"({"samples": [{"timestamp": 2, "allocated": 5}]})";
  CHECK(formats::telemetry_in(text, {.events_key = "samples"}).events.size() == 1);
  CHECK_THROWS_AS(formats::telemetry_in(text, {.events_key = "events"}), formats::TelemetryProblem);
  CHECK_THROWS_AS(formats::telemetry_in(text, {.events_key = "samples", .version_1 = false}),
                  formats::TelemetryProblem);
}

TEST_CASE("rows of function calls are read as such") {
  const auto calls = formats::telemetry_in(
      R"([{"name": "f", "start_time": 1, "end_time": 2, "duration": 1,
           "memory_start_mb": 1, "memory_end_mb": 3, "memory_peak_mb": 4}])");
  CHECK(calls.kind == "calls");
  REQUIRE(calls.calls.size() == 1);
  CHECK(calls.calls[0].peak_mb == 4);
}

TEST_CASE("a file of records is valid after every record") {
  const Json event = whole_event();
  for (const char* format : {"json", "csv"}) {
    const File file{"out", "something longer that was here before"};
    formats::RecordFile records{file.path(), format, formats::event_columns()};
    std::size_t checked = 0;
    for (std::size_t count = 0; count < 4; ++count, ++checked) {
      const formats::LoadedTelemetry loaded = formats::load_telemetry(file.path());
      REQUIRE(loaded.events.size() == count);
      for (const formats::TelemetryEvent& one : loaded.events)
        CHECK(formats::event_json(one) == event);
      records.add(event);
    }
    CHECK(checked == 4);
  }
}

TEST_CASE("cells are quoted if necessary, and read back") {
  const std::vector<std::string> cells = {"plain", "a,b", "say \"x\"", "two\nlines", "=1+1",
                                          "-5",    "",    "'=1+1",     "'quoted'"};
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + csv_cell(cell);
  CHECK(line.find(",'=1+1,") != std::string::npos);
  const CsvRows csv = csv_rows(line + "\n\nx,y");
  REQUIRE(csv.rows.size() == 2);
  CHECK(csv.rows[0] == cells);
  CHECK(csv.rows[1] == std::vector<std::string>{"x", "y"});
  CHECK(!csv.ended);
  CHECK(csv_rows("a,\"b").cut);
  CHECK(csv_rows("a,b\r\nc,\"d\ne,f").open_quote_line == 2);
}

TEST_CASE("an inconsistent rank is reported; variables without a rank are not") {
  CHECK(formats::inconsistent_rank(
            variables({{"RANK", "7"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "4"}})) ==
        "RANK=7, LOCAL_RANK=0, WORLD_SIZE=4");
  CHECK(formats::inconsistent_rank(variables({{"RANK", "7"}, {"WORLD_SIZE", "4"}})) ==
        "RANK=7, no LOCAL_RANK, WORLD_SIZE=4");
  CHECK(formats::inconsistent_rank(variables({{"RANK", "7"}})) == "");
  CHECK(formats::inconsistent_rank(variables({{"RANK", "7"},
                                              {"WORLD_SIZE", "4"},
                                              {"SLURM_PROCID", "1"},
                                              {"SLURM_LOCALID", "0"},
                                              {"SLURM_NTASKS", "2"}})) == "");
}

TEST_CASE("the rank is that of the first complete and consistent group of variables") {
  const formats::RankTags torch = formats::rank_of(variables({{"RANK", "3"},
                                                              {"LOCAL_RANK", "1"},
                                                              {"WORLD_SIZE", "8"},
                                                              {"SLURM_PROCID", "5"},
                                                              {"TORCHELASTIC_RUN_ID", "run"},
                                                              {"SLURM_JOB_ID", "99"}}));
  CHECK(torch.rank == 3);
  CHECK(torch.local_rank == 1);
  CHECK(torch.world_size == 8);
  CHECK(torch.job_id == "run");
  const formats::RankTags incomplete =
      formats::rank_of(variables({{"RANK", "3"},
                                  {"LOCAL_RANK", "3"},
                                  {"OMPI_COMM_WORLD_RANK", "1"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                  {"OMPI_COMM_WORLD_SIZE", "2"}}));
  CHECK(incomplete.rank == 1);
  const formats::RankTags found = formats::rank_of(variables({{"RANK", "8"},
                                                              {"LOCAL_RANK", "1"},
                                                              {"WORLD_SIZE", "8"},
                                                              {"SLURM_PROCID", "5"},
                                                              {"SLURM_LOCALID", "5"},
                                                              {"SLURM_NTASKS", "6"},
                                                              {"SLURM_JOB_ID", "99"}}));
  CHECK(found.rank == 5);
  CHECK(found.job_id == "99");
  CHECK(
      !formats::rank_of(variables({{"RANK", "x"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "1"}})).rank);
  CHECK(!formats::rank_of(variables({})).job_id);
}

TEST_CASE("given values take precedence, and must be consistent") {
  const formats::RankTags found{"job", 1, 1, 4};
  const formats::RankTags both = formats::with_overrides(found, {{}, 3, {}, {}});
  CHECK(both.rank == 3);
  CHECK(both.local_rank == 1);
  CHECK(both.job_id == "job");
  CHECK_THROWS_AS(formats::with_overrides(found, {{}, 4, {}, {}}), Error);
  CHECK_THROWS_AS(formats::with_overrides({}, {{}, 1, {}, {}}), Error);
  CHECK(formats::with_overrides({}, {{}, 1, {}, 2}).world_size == 2);
}
