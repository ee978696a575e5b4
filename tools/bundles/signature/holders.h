// The holders and the failed request of a source, as its row has them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tools/bundles/signature/signature.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// The device whose memory the death is about, as an entry in `devices`; 0: host memory.
std::uint32_t subject_device(const Source& source);

// What counts for the signature, largest first: the holders of host memory, or those of the subject
// device. A stack below half a percent is added to the largest one with the same path. At most
// kMostHolders; the rest, and the bytes that have no stack, are one without frames.
inline constexpr std::size_t kMostHolders = 20;
std::vector<Holder> holders_of(const Source& source);
// The first `most`, of which the last one is all others together, if there are more.
std::vector<Holder> with_rest(std::vector<Holder> holders, std::size_t most);

// Nothing if no request failed.
std::optional<Request> request_of(const Source& source);

// The same as in the source's row.
Signature signature_of(const Source& source);

// Reads the row's frames of stacks, innermost first: without the interpreter's, and those that
// every stack has.
class FrameReader {
 public:
  explicit FrameReader(const recording::Locations& locations) : locations_(locations) {}

  // At most kMostFrames.
  Frames frames_of(const std::vector<recording::LocationId>& stack);

 private:
  const std::shared_ptr<const Frame>& frame_of(recording::LocationId id);

  struct Known {
    bool is_read = false;
    std::shared_ptr<const Frame> frame;  // null: left out
  };
  const recording::Locations& locations_;
  std::vector<Known> frames_;  // by location
};
inline constexpr std::size_t kMostFrames = 32;

// At most `most` frames, among them those of the path.
Frames selected(const Frames& frames, std::size_t most);

}  // namespace oomrec::tools::bundles
