#include "tools/service/fleet/signature_counts.h"

#include <exception>

#include "tools/base/error.h"
#include "tools/base/foreign_file.h"
#include "tools/base/output_file.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/holders.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/symbolize/cache_directory.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "signatures";
constexpr std::size_t kMostLabelBytes = 200;
constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 20;
constexpr std::chrono::seconds kTimeout{120};

std::string signature_of(const fs::path& bundle) try {
  const bundles::Source source =
      bundles::open_recorded(bundle.string(), recording::CacheDirectory::of_user());
  return printable_prefix(bundles::signature_of(source).key, kMostLabelBytes);
} catch (const std::exception&) {
  return {};  // it is gone, or damaged
}

// In the child: one line for each bundle.
int write_signatures(const std::vector<fs::path>& bundles, const fs::path& file) try {
  std::string lines;
  for (const fs::path& bundle : bundles) lines += signature_of(bundle) + "\n";
  write_output(file, lines, IfExists::overwrite);
  return 0;
} catch (const std::exception& error) {
  remark(error.what());
  return 1;
}

}  // namespace

void SignatureCounts::count(std::string signature) {
  if (signature.empty()) signature = kUnknownSignature;
  const bool has_own = counts_.contains(signature) || signature == kUnknownSignature ||
                       counts_.size() < kMostSignatures;
  Count& count = counts_[has_own ? std::move(signature) : std::string{kOtherSignature}];
  if (count.deaths++ == 0) count.first_seen = Clock::now();
  if (on_change_) on_change_();
}

void SignatureCounts::add(const fs::path& bundle) {
  if (bundle.empty()) return count({});
  if (waiting_.size() >= kMostWaiting) return count(std::string{kOtherSignature});
  waiting_.push_back(bundle);
  if (!child_) start();
}

void SignatureCounts::start() try {
  being_read_.assign(waiting_.begin(), waiting_.end());
  waiting_.clear();
  scratch_ = std::make_unique<TemporaryDirectory>();
  child_ = ChildProcess::start(
      [&] { return write_signatures(being_read_, scratch_->path() / kFile); }, {}, kTimeout);
  if (!child_) finish();
} catch (const Error& error) {
  remark(error.what());
  finish();
}

// Those about which the child has said nothing are unknown.
void SignatureCounts::finish() {
  child_.reset();
  std::string text;
  if (scratch_ != nullptr) try {
      text = read_foreign_file(ForeignPath::in(scratch_->path(), kFile), kMostFileBytes);
    } catch (const std::exception&) {
    }
  scratch_.reset();
  const std::vector<std::string_view> lines = split(text, '\n');
  for (std::size_t i = 0; i < being_read_.size(); ++i)
    count(i < lines.size() ? std::string{lines[i]} : std::string{});
  being_read_.clear();
}

void SignatureCounts::add_descriptors(std::vector<pollfd>& polled) const {
  if (child_) child_->add_descriptor(polled);
}

std::optional<SignatureCounts::Clock::time_point> SignatureCounts::wake_time() const {
  return child_ ? child_->wake_time() : std::nullopt;
}

void SignatureCounts::on_poll(std::span<const pollfd>) {
  if (!child_ || !child_->poll()) return;
  finish();
  if (!waiting_.empty()) start();
}

}  // namespace oomrec::tools::service
