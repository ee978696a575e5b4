#include "tools/bundles/signature/signature.h"

#include <algorithm>

namespace oomrec::tools::bundles {
namespace {

constexpr double kLeastShare = 0.25;
constexpr std::size_t kMostAlso = 2;

// Of a forged recording, whole numbers would overflow.
struct Sum {
  std::string key;
  double bytes = 0, request_bytes = 0;
  const Frames* frames = nullptr;  // of the largest
  double largest = 0;
};

// Largest first; what has no path is left out.
class Sums {
 public:
  explicit Sums(std::size_t frames) : frames_(frames) {}

  void add(const Frames& frames, double bytes, bool is_request) {
    std::string key = path_key(frames, frames_);
    if (key.empty()) return;
    auto at = std::find_if(sums_.begin(), sums_.end(), [&](const Sum& s) { return s.key == key; });
    if (at == sums_.end()) at = sums_.insert(at, Sum{std::move(key)});
    at->bytes += bytes;
    if (is_request) at->request_bytes = bytes;
    if (at->frames == nullptr || bytes > at->largest) {
      at->frames = &frames;
      at->largest = bytes;
    }
  }

  const std::vector<Sum>& sorted() {
    std::stable_sort(sums_.begin(), sums_.end(), [](const Sum& a, const Sum& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.key < b.key;
    });
    return sums_;
  }

 private:
  std::size_t frames_;
  std::vector<Sum> sums_;
};

}  // namespace

Signature signature_of(const std::vector<Holder>& holders, const std::optional<Request>& request,
                       std::string_view service) {
  Sums paths{kPathFrames}, coarse{1};
  double whole = 0;
  const auto add = [&](const Frames& frames, double bytes, bool is_request) {
    whole += bytes;
    paths.add(frames, bytes, is_request);
    coarse.add(frames, bytes, is_request);
  };
  for (const Holder& holder : holders)
    add(holder.frames, static_cast<double>(holder.weight()), false);
  if (request && request->is_giant())
    add(request->frames, static_cast<double>(request->bytes), true);

  Signature signature;
  const std::vector<Sum>& sums = paths.sorted();
  if (whole == 0) return signature;
  if (!sums.empty()) signature.top_share = std::min(sums.front().bytes / whole, 1.0);
  const bool is_spread = signature.top_share < kLeastShare;
  for (std::size_t i = is_spread ? 0 : 1; i < sums.size() && signature.also.size() < kMostAlso; ++i)
    signature.also.push_back(sums[i].key);
  if (is_spread) {
    signature.key = service.empty() ? "spread" : "spread:" + std::string{service};
    signature.coarse = signature.key;
    signature.title = "spread: no code held a quarter of the memory";
  } else {
    const Sum& top = sums.front();
    signature.key = top.key;
    signature.coarse = coarse.sorted().front().key;
    signature.title = path_title(*top.frames);
    // An array that has grown to a third of what it asks for has grown, and is no single request.
    signature.is_request = top.request_bytes > top.bytes * 3 / 4;
  }
  return signature;
}

}  // namespace oomrec::tools::bundles
