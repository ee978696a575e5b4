#include "tools/views/export/perfetto_heap.h"

#include <map>

#include "tools/base/text.h"
#include "tools/views/export/rows.h"

namespace oomrec::tools::views {
namespace {

using session::TableId;

// The field numbers of each message.
namespace packet {
constexpr unsigned kTimestamp = 8, kInterned = 12, kProfile = 37;
}
namespace interned {
constexpr unsigned kFunctionName = 5, kFrame = 6, kCallstack = 7, kBuildId = 16, kPath = 17,
                   kSourcePath = 18, kMapping = 19;
}
namespace string {
constexpr unsigned kId = 1, kText = 2;
}
namespace frame {
constexpr unsigned kId = 1, kFunction = 2, kMapping = 3, kOffset = 4, kSourcePath = 5, kLine = 6;
}
namespace mapping {
constexpr unsigned kId = 1, kBuildId = 2, kStart = 4, kEnd = 5, kLoadBias = 6, kPath = 7;
}
namespace callstack {
constexpr unsigned kId = 1, kFrame = 2;
}
namespace profile {
constexpr unsigned kDump = 5;
}
namespace dump {
constexpr unsigned kPid = 1, kSample = 2, kTimestamp = 9, kHeap = 11, kInterval = 12;
}
namespace sample {
constexpr unsigned kStack = 1, kAllocated = 2, kFreed = 3, kTimestamp = 4, kAllocations = 5,
                   kFrees = 6;
}

class HeapProfile {
 public:
  explicit HeapProfile(const ExportRequest& request)
      : request_(request),
        locations_(request.locations()),
        recording_(request.recording()),
        end_ns_(std::max(recording_.header().last_tick_ns.load(),
                         recording_.header().start_monotonic_ns)) {}

  Message packet() {
    std::map<Space, Message> dumps;
    for (const HolderRow& row : holder_rows(recording_, request_.stacks, request_.selection))
      dumps[row.space].message(dump::kSample, sample(row));
    Message profile;
    for (auto& [space, message] : dumps) {
      message.number(dump::kPid, static_cast<std::uint32_t>(recording_.header().pid));
      message.text(dump::kHeap, name_of(space)).number(dump::kTimestamp, end_ns_);
      message.number(dump::kInterval,
                     recording_.estimated() ? recording_.header().interval_bytes : 1);
      profile.message(profile::kDump, message);
    }
    intern_stacks();
    Message packet;
    packet.number(packet::kTimestamp, end_ns_).message(packet::kInterned, interned_);
    return packet.message(packet::kProfile, profile);
  }

 private:
  // What is not freed is what the holder weighs at the end, as in the other formats. Of
  // reservations and files it may be more than was ever allocated.
  Message sample(const HolderRow& row) {
    const std::uint64_t bytes = std::max(row.ever.bytes, row.end.bytes);
    const std::uint64_t count = std::max(row.ever.count, row.end.count);
    Message message;
    message.number(sample::kStack, 1 + stacks_(row.stack)).number(sample::kTimestamp, end_ns_);
    message.number(sample::kAllocated, bytes).number(sample::kAllocations, count);
    message.number(sample::kFreed, bytes - row.end.bytes);
    message.number(sample::kFrees, count - row.end.count);
    return message;
  }

  // Frames outermost first.
  void intern_stacks() {
    for (const recording::StackId stack : stacks_.ids()) {
      Message message;
      message.number(callstack::kId, 1 + stacks_(stack));
      const std::vector<recording::LocationId> frames = frames_of(request_.stacks, stack);
      for (auto location = frames.rbegin(); location != frames.rend(); ++location)
        message.number(callstack::kFrame, 1 + frames_(*location));
      interned_.message(interned::kCallstack, message);
    }
    for (const recording::LocationId id : frames_.ids()) intern_frame(id);
    for (const std::uint32_t id : mappings_.ids()) intern_mapping(id);
  }

  void intern_frame(recording::LocationId id) {
    const recording::Location& location = locations_[id];
    Message message;
    message.number(frame::kId, 1 + frames_(id)).number(frame::kLine, location.line);
    message.number(frame::kFunction, text(interned::kFunctionName, frame_name(locations_, id)));
    if (!location.file.empty())
      message.number(frame::kSourcePath, text(interned::kSourcePath, printable(location.file)));
    if (location.module != 0) {
      message.number(frame::kMapping, 1 + mappings_(location.module));
      message.number(frame::kOffset, location.offset);
    }
    interned_.message(interned::kFrame, message);
  }

  void intern_mapping(std::uint32_t id) {
    session::Module module{};
    recording_.view().read(TableId::modules, id, module);
    Message message;
    message.number(mapping::kId, 1 + mappings_(id)).number(mapping::kLoadBias, module.base);
    message.number(mapping::kStart, module.start).number(mapping::kEnd, module.end);
    message.number(mapping::kBuildId, text(interned::kBuildId, build_id_bytes(module)));
    message.number(mapping::kPath, text(interned::kPath, printable(recording_.text(module.path))));
    interned_.message(interned::kMapping, message);
  }

  static std::string build_id_bytes(const session::Module& module) {
    const std::size_t bytes = std::min<std::size_t>(module.build_id_bytes, sizeof module.build_id);
    return {reinterpret_cast<const char*>(module.build_id), bytes};
  }

  // The number of a text among those of its kind. The first use interns it.
  std::uint64_t text(unsigned kind, const std::string& value) {
    auto& interned = texts_[kind];
    const auto [at, is_new] = interned.try_emplace(value, interned.size() + 1);
    if (is_new) {
      Message message;
      message.number(string::kId, at->second).text_even_empty(string::kText, value);
      interned_.message(kind, message);
    }
    return at->second;
  }

  const ExportRequest& request_;
  const recording::Locations& locations_;
  const recording::Recording& recording_;
  const std::uint64_t end_ns_;
  Message interned_;
  std::map<unsigned, std::map<std::string, std::uint64_t>> texts_;
  Numbering stacks_, frames_, mappings_;
};

}  // namespace

Message heap_profile(const ExportRequest& request) { return HeapProfile{request}.packet(); }

}  // namespace oomrec::tools::views
