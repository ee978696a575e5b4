// The signature of a death: who held the memory, as a text that is the same for the same cause.
//
// Computed from what a row has: its holders, its failed request and its limit. Verdict, program,
// release, limit and version of Python are no part of it. docs/commands/export.md has the rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/base/json.h"
#include "tools/bundles/signature/path.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

inline constexpr unsigned kSignatureVersion = 2;

struct Holder {
  Space space = Space::heap;
  std::string device;  // empty: host memory
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> resident_bytes;  // if the death was for what is resident
  std::uint64_t count = 0;
  bool estimated = false;
  Frames frames;  // innermost first; empty: unknown, or all that are not listed

  std::uint64_t weight() const { return resident_bytes.value_or(bytes); }
};

// The failed request. It is a cause of its own if it is larger than a quarter of its limit.
struct Request {
  std::uint64_t bytes = 0, limit_bytes = 0;  // 0: unknown
  Frames frames;

  bool is_giant() const { return limit_bytes != 0 && bytes > limit_bytes / 4; }
};

struct Signature {
  std::string key;                // empty: nothing is known
  std::string coarse;             // of one frame
  std::vector<std::string> also;  // the next two
  std::string title;              // for people
  double top_share = 0;           // of the memory that counts
  bool is_request = false;        // the giant request is most of it
};

// `service`: names a death in which no path has a quarter of the memory.
Signature signature_of(const std::vector<Holder>& holders, const std::optional<Request>& request,
                       std::string_view service);

// Where a process ran and for whom, from the labels in its recording.
class Labels {
 public:
  explicit Labels(const Source& source);

  // The value of a row's column: of the first of its labels that is there. Empty: none is.
  std::string column(std::string_view name) const;

  // The labels that have no column of their own, at most `most`.
  Json others(std::size_t most) const;

 private:
  std::map<std::string, std::string, std::less<>> labels_;
};

}  // namespace oomrec::tools::bundles
