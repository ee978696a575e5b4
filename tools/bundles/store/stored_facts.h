// A bundle's manifest.json, metadata.json and processes.json as structs. What a file lacks, or a
// file that cannot be read, leaves the defaults.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/facts/account.h"
#include "common/facts/end.h"
#include "common/facts/environment.h"
#include "common/facts/manifest.h"
#include "common/facts/metadata.h"
#include "common/facts/processes.h"
#include "common/facts/verdict.h"
#include "tools/base/fact_reader.h"

namespace oomrec::tools::bundles {

struct Manifest : facts::Manifest<std::string, std::vector<std::string>> {
  bool is_merged = false;
};

struct Metadata : facts::Metadata {
  std::string reason, outcome;  // empty: not a bundle's, or it cannot be read
  facts::Verdict verdict;
  facts::Crash<JsonPart> crash;
  session::LimitReserve limit_reserve{};
  session::CgroupAccount account{};
  std::optional<facts::RequestCounts> request;
  std::optional<std::uint32_t> failure;
  session::ChildDeath child{};
  std::string backend;
  std::uint64_t captured_event_count = 0;
  std::optional<std::string> context;
  std::array<std::optional<std::string>, facts::kExceptionKeys.size()> exception;
  JsonPart custom_metadata{Json::object()};
};

using TreeProcess = facts::StoredProcess<std::string>;
using OtherProcess = facts::OtherProcess<std::string>;
struct Processes : facts::Processes {
  std::vector<TreeProcess> processes;  // empty: the file cannot be read
  std::string cgroup;
  std::vector<OtherProcess> others;
  std::string session_directory;
  std::uint64_t left_out = 0;
};

// The file of the bundle that is called as its section. `problem`: see read_json().
template <class File>
File read_file(const std::filesystem::path& bundle, std::string* problem = nullptr) {
  const std::string name = std::string{facts::Section<File>::key} + ".json";
  return fact_of<File>(read_json(bundle, name, problem));
}

// The environment variables in its environment.json: an object, or null.
inline Json variables_of(const std::filesystem::path& bundle) {
  return member(read_json(bundle, "environment.json"), facts::kVariablesKey);
}

}  // namespace oomrec::tools::bundles
