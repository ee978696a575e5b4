// Prints the schemas of all described facts and files, from which tests/integration/test_facts.py
// makes docs/schemas/facts.json, the schemas of the files, and the tables of keys.
#include <cstdio>
#include <optional>
#include <string_view>

#include "common/facts/account.h"
#include "common/facts/end.h"
#include "common/facts/environment.h"
#include "common/facts/manifest.h"
#include "common/facts/metadata.h"
#include "common/facts/processes.h"
#include "common/facts/space.h"
#include "common/facts/verdict.h"
#include "tests/unit/common/facts/schema.h"

namespace {

using namespace oomrec;
using namespace oomrec::facts;

const session::Failure kFailure{};
const session::Thread kThread{};
const session::Device kDevice{};
const Request<Stack> kRequest{kFailure, kThread, {}, {}, {}};
const ShownRequest<Stack> kShownRequest{kRequest, {}};
const StoredRequest<Stack> kStoredRequest{kRequest, false, kDevice};

struct MetadataFile : facts::Metadata {
  std::string_view reason, outcome;
  Verdict verdict;
  Crash<Stack> crash{.stack = {}};
  session::LimitReserve limit_reserve{};
  session::CgroupAccount account{};
  const StoredRequest<Stack>& request = kStoredRequest;
  std::optional<std::uint32_t> failure;
  session::ChildDeath child{};
  std::string_view backend;
  std::uint64_t captured_event_count = 0;
  std::optional<std::string_view> context, exception[kExceptionKeys.size()];
  CustomMetadata custom_metadata;
};
using Row = StoredProcess<std::string_view>;
struct ProcessesFile : facts::Processes {
  ListOf<Row> processes;
  std::string_view cgroup;
  ListOf<OtherProcess<std::string_view>> others;
  std::string_view session_directory;
  std::uint64_t left_out = 0;
};

struct ShownProcess : facts::Process {
  std::int32_t pid = 0, parent_pid = 0;
  std::string_view start_utc, executable, working_directory, python;
  Arguments argv;
  Drivers drivers;
};
struct HeapAreas : facts::Heap {
  ListOf<HeapArea> areas;
  std::uint64_t left_out = 0;
};
struct UsedGpu : facts::Gpu {
  session::Device device{};
  std::string_view uuid, driver_version, driver_path;
};
struct MemoryCgroup : facts::Cgroup {
  unsigned version = 0;
  std::string_view path;
  static KernelLimit value(const CgroupFile&) { return {}; }
  static std::optional<std::uint64_t> shared_bytes() { return {}; }
};
struct EnvironmentFile : facts::Environment {
  std::string_view host, start_utc, executable, working_directory;
  struct {
    std::string_view release, version, machine;
  } kernel;
  std::int32_t pid = 0, parent_pid = 0;
  std::optional<Arguments> argv;
  std::optional<std::uint64_t> ram_bytes, swap_bytes;
  std::optional<ResourceLimits> rlimits;
  std::optional<Part<MemoryCgroup>> cgroup;
  std::optional<Sizes> meminfo, smaps_rollup;
  std::optional<Pressure> pressure;
  std::optional<Part<HeapAreas>> heap;
  std::optional<ListOf<UsedGpu>> gpus;
  struct {
    std::string_view oomrec, glibc, interpreter, driver;
  } versions;
  ListOf<Module<std::string_view>> modules;
  std::optional<Variables> variables;
};

}  // namespace

int main() {
  Json schemas = Json::object();
  for (const Vocabulary& shared : kVocabulary) {
    Json& words = schemas[shared.name] = enum_of(shared.words);
    if (shared.may_be_null) words["enum"].push_back(nullptr);
  }
  add<Verdict>(schemas);
  schemas["request"] = or_null(section_of(kShownRequest));
  schemas["stored_request"] = or_null(section_of(kStoredRequest));
  add<Aftershocks>(schemas);
  add<session::Thread>(schemas);
  add<session::Device>(schemas);
  add<session::DeviceEvidence>(schemas);
  add<Limit>(schemas);
  add<session::LimitReserve>(schemas);
  add<Crash<Stack>>(schemas);
  add<session::ChildDeath>(schemas);
  add<session::CgroupAccount>(schemas);
  add<TreeProcess<std::string_view>>(schemas);
  add<Row>(schemas);
  add<OtherProcess<std::string_view>>(schemas);
  add<ShownProcess>(schemas);
  add<MemoryCgroup>(schemas);
  add<HeapAreas>(schemas);
  add<HeapArea>(schemas);
  add<UsedGpu>(schemas);
  add<Module<std::string_view>>(schemas);
  add<SpaceTotals>(schemas);
  add<MapTotals>(schemas);
  add<NamedTotals>(schemas);

  Json files = Json::object();
  add<Manifest<std::string_view, FileNames>>(files);
  files[Section<MetadataFile>::key] = section_of(MetadataFile{});
  add<ProcessesFile>(files);
  add<EnvironmentFile>(files);
  // Written by Python: tools/python/oomrec/gpumemprof.
  files["environment"]["properties"]["system"] = {
      {"type", "object"},
      {"description",
       "if a tracker of the program used the flight recorder: the result of `get_system_info()` of "
       "[`oomrec.gpumemprof`](python/telemetry.md)"}};
  std::puts(Json{{"$defs", schemas}, {"files", files}}.dump().c_str());
}
