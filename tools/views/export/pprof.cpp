// pprof's profile.proto, gzipped: live and allocated memory by stack.
//
// Each recording::Location becomes one pprof location, so an inlined function is a separate
// location. Field numbers: https://github.com/google/pprof/blob/main/proto/profile.proto
#include <unordered_map>

#include "common/text/frames.h"
#include "tools/base/text.h"
#include "tools/views/export/format.h"
#include "tools/views/export/output.h"
#include "tools/views/export/protobuf.h"
#include "tools/views/export/rows.h"

namespace oomrec::tools::views {
namespace {

using session::TableId;

// The field numbers of each message.
namespace profile {
constexpr unsigned kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5,
                   kString = 6, kTimeNanos = 9, kDurationNanos = 10, kPeriodType = 11, kPeriod = 12,
                   kComment = 13, kDefaultSampleType = 14;
}
namespace value_type {
constexpr unsigned kType = 1, kUnit = 2;
}
namespace sample {
constexpr unsigned kLocations = 1, kValues = 2, kLabel = 3;
}
namespace label {
constexpr unsigned kKey = 1, kText = 2;
}
namespace mapping {
constexpr unsigned kId = 1, kStart = 2, kLimit = 3, kFile = 5, kBuildId = 6, kHasFunctions = 7,
                   kHasFiles = 8, kHasLines = 9, kHasInlined = 10;
}
namespace location {
constexpr unsigned kId = 1, kMapping = 2, kAddress = 3, kLine = 4;
}
namespace line {
constexpr unsigned kFunction = 1, kLine = 2;
}
namespace function {
constexpr unsigned kId = 1, kName = 2, kSystemName = 3, kFile = 4;
}

struct SampleType {
  const char* type;
  const char* unit;
  Amount HolderRow::*amount;
  std::uint64_t Amount::*figure;
};
constexpr SampleType kSampleTypes[] = {
    {"inuse_space", "bytes", &HolderRow::end, &Amount::bytes},
    {"inuse_objects", "count", &HolderRow::end, &Amount::count},
    {"alloc_space", "bytes", &HolderRow::ever, &Amount::bytes},
    {"alloc_objects", "count", &HolderRow::ever, &Amount::count},
};

class Profile {
 public:
  explicit Profile(const ExportRequest& request)
      : request_(request), locations_(request.locations()), view_(request.recording().view()) {
    string("");  // the format requires it as the first string
  }

  std::string bytes() {
    for (const SampleType& type : kSampleTypes)
      message_.message(profile::kSampleType, value_type(type.type, type.unit));
    // Readers assume that the first mapping is the program.
    if (const std::uint32_t program = module_of_program(); program != 0) mappings_(program);
    for (const HolderRow& row :
         holder_rows(request_.recording(), request_.stacks, request_.selection))
      add_sample(row);
    add_locations();
    add_facts();
    for (const std::string* text : texts_) message_.text_even_empty(profile::kString, *text);
    return message_.bytes();
  }

 private:
  std::uint64_t string(const std::string& text) {
    const auto [at, is_new] = numbers_.try_emplace(text, texts_.size());
    if (is_new) texts_.push_back(&at->first);
    return at->second;
  }

  std::uint32_t module_of_program() const {
    const session::StringId executable = request_.recording().header().executable;
    session::Module module{};
    for (std::uint32_t id = 1; id < view_.count(TableId::modules); ++id) {
      const bool read = view_.read(TableId::modules, id, module);
      if (read && !view_.string(executable).empty() &&
          view_.string(module.path) == view_.string(executable))
        return id;
    }
    return 0;
  }

  Message value_type(const char* type, const char* unit) {
    Message message;
    message.number(value_type::kType, string(type)).number(value_type::kUnit, string(unit));
    return message;
  }

  void add_sample(const HolderRow& row) {
    std::vector<std::uint64_t> locations;
    for (const recording::LocationId location : frames_of(request_.stacks, row.stack))
      locations.push_back(1 + location_numbers_(location));
    std::vector<std::uint64_t> values;
    for (const SampleType& type : kSampleTypes) values.push_back(row.*type.amount.*type.figure);
    Message label;
    label.number(label::kKey, string("space"));
    label.number(label::kText, string(std::string{name_of(row.space)}));
    Message sample;
    sample.packed(sample::kLocations, locations).packed(sample::kValues, values);
    message_.message(profile::kSample, sample.message(sample::kLabel, label));
  }

  void add_locations() {
    for (const recording::LocationId id : location_numbers_.ids()) {
      const recording::Location& location = locations_[id];
      Message line;
      line.number(line::kFunction, function(location, id)).number(line::kLine, location.line);
      Message row;
      row.number(location::kId, 1 + location_numbers_(id));
      if (location.module != 0) {
        session::Module module{};
        view_.read(TableId::modules, location.module, module);
        row.number(location::kMapping, 1 + mappings_(location.module));
        row.number(location::kAddress, module.base + location.offset);
      }
      message_.message(profile::kLocation, row.message(location::kLine, line));
    }
    for (const std::uint32_t id : mappings_.ids()) add_mapping(id);
  }

  // Functions differ by name or file.
  std::uint64_t function(const recording::Location& location, recording::LocationId id) {
    const std::uint64_t name = string(function_name(location, id));
    const std::uint64_t file = string(printable(location.file));
    const auto [at, is_new] = functions_.try_emplace(name << 32 | file, functions_.size() + 1);
    if (!is_new) return at->second;
    Message function;
    function.number(function::kId, at->second).number(function::kName, name);
    function.number(function::kSystemName, name).number(function::kFile, file);
    message_.message(profile::kFunction, function);
    return at->second;
  }

  // Without the line number, which the location already has.
  std::string function_name(const recording::Location& location, recording::LocationId id) const {
    const bool named =
        location.kind == recording::Location::Kind::python && !location.function.empty();
    return named ? clip(printable(location.function), kLongestName) : frame_name(locations_, id);
  }

  void add_mapping(std::uint32_t id) {
    session::Module module{};
    view_.read(TableId::modules, id, module);
    Message message;
    message.number(mapping::kId, 1 + mappings_(id));
    message.number(mapping::kStart, module.start).number(mapping::kLimit, module.end);
    char build_id[65];
    message.number(mapping::kFile, string(printable(request_.recording().text(module.path))));
    message.number(mapping::kBuildId, string(std::string{text::build_id_text(module, build_id)}));
    // Claims complete symbols, so that readers do not symbolize again: names that oomrec could not
    // find are not to be found.
    for (const unsigned claim :
         {mapping::kHasFunctions, mapping::kHasFiles, mapping::kHasLines, mapping::kHasInlined})
      message.number(claim, 1);
    message_.message(profile::kMapping, message);
  }

  void add_facts() {
    const recording::Recording& recording = request_.recording();
    const session::Header& header = recording.header();
    const std::uint64_t end_ns = std::max(header.last_tick_ns.load(), header.start_monotonic_ns);
    message_.number(profile::kTimeNanos, header.start_realtime_ns);
    message_.number(profile::kDurationNanos, end_ns - header.start_monotonic_ns);
    message_.message(profile::kPeriodType, value_type("space", "bytes"));
    message_.number(profile::kPeriod, recording.estimated() ? header.interval_bytes : 1);
    message_.number(profile::kComment, string("oomrec " OOMREC_VERSION));
    if (recording.estimated())
      message_.number(profile::kComment, string("small blocks are estimates from samples"));
    message_.number(profile::kDefaultSampleType, string(kSampleTypes[0].type));
  }

  const ExportRequest& request_;
  const recording::Locations& locations_;
  const session::View& view_;
  Message message_;
  std::unordered_map<std::string, std::uint64_t> numbers_;
  std::vector<const std::string*> texts_;
  std::unordered_map<std::uint64_t, std::uint64_t> functions_;
  Numbering location_numbers_, mappings_;
};

}  // namespace

void write_pprof(const ExportRequest& request, Output& output) {
  output.write(gzipped(Profile{request}.bytes()));
}

}  // namespace oomrec::tools::views
