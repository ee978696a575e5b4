// Counts deaths for lack of memory by their signature: who held the memory.
//
// To find it takes symbols, so a child process reads the bundles. The first kMostSignatures have
// counts of their own, all later ones are `other`: a counter must not decrease.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/base/directory.h"
#include "tools/service/fleet/child_process.h"
#include "tools/service/fleet/listener.h"

namespace oomrec::tools::service {

inline constexpr std::string_view kOtherSignature = "other";
inline constexpr std::string_view kUnknownSignature = "unknown";  // no bundle, or not readable

class SignatureCounts : public PollClient {
 public:
  static constexpr std::size_t kMostSignatures = 20;
  static constexpr std::size_t kMostWaiting = 100;  // bundles; those beyond are `other`

  struct Count {
    std::uint64_t deaths = 0;
    Clock::time_point first_seen{};
  };

  // `bundle`: empty if there is none.
  void add(const std::filesystem::path& bundle);
  void count(std::string signature);

  const std::map<std::string, Count>& counts() const { return counts_; }
  // `callback` runs after a change of the counts.
  void on_change(std::function<void()> callback) { on_change_ = std::move(callback); }

  void add_descriptors(std::vector<pollfd>&) const override;
  std::optional<Clock::time_point> wake_time() const override;
  void on_poll(std::span<const pollfd>) override;

 private:
  void start();
  void finish();

  std::map<std::string, Count> counts_;
  std::deque<std::filesystem::path> waiting_;
  std::vector<std::filesystem::path> being_read_;
  std::optional<ChildProcess> child_;
  std::unique_ptr<TemporaryDirectory> scratch_;
  std::function<void()> on_change_;
};

}  // namespace oomrec::tools::service
