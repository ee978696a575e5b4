#include "tools/bundles/store/snapshot_source.h"

#include <fmt/format.h>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/formats/pytorch/pickle_reader.h"
#include "tools/formats/pytorch/snapshot.h"
#include "tools/formats/pytorch/stack_nodes.h"

namespace oomrec::tools::bundles {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20;

std::string contents_of(const ForeignPath& file) {
  try {
    return read_foreign_file(file, kMostBytes);
  } catch (const std::runtime_error& error) {
    throw formats::PickleError{fmt::format("it {}", error.what())};
  }
}

std::uint64_t modified_ns(const ForeignPath& file) {
  const struct stat status = ForeignFile{file}.status();
  return static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

}  // namespace

bool is_snapshot(const ForeignPath& file) {
  return formats::may_be_snapshot(first_bytes_of(file, 1));
}

std::optional<ForeignPath> snapshot_in(const std::filesystem::path& bundle) {
  if (bundle.empty()) return std::nullopt;
  ForeignPath file = ForeignPath::in(bundle, kSnapshotName);
  return is_snapshot(file) ? std::optional{std::move(file)} : std::nullopt;
}

Source open_snapshot(const ForeignPath& file) {
  Source source;
  source.imported_from = "memory snapshot of PyTorch";
  try {
    const std::string bytes = contents_of(file);
    formats::ImportedSnapshot snapshot = formats::import_snapshot(bytes, modified_ns(file));
    source.recording = std::make_unique<recording::Recording>(
        file.path(), std::move(snapshot.bytes), snapshot.count);
    recording::StoredSymbols names;
    for (std::size_t i = 0; i < snapshot.native_names.size(); ++i)
      names.add(formats::kNativeBuildId, i + 1, std::move(snapshot.native_names[i]));
    source.locations = std::make_unique<recording::Locations>(*source.recording, std::move(names));
    source.metadata["failure"] = snapshot.last_failure;
    source.metadata["context"] = "torch.cuda.memory._dump_snapshot";
  } catch (const formats::PickleError& error) {
    throw Error{Exit::bad_input,
                fmt::format("{} is not a readable PyTorch memory snapshot: {}",
                            printable(file.path().string()), error.what()),
                "Make one with torch.cuda.memory._dump_snapshot(FILE)."};
  }
  return source;
}

}  // namespace oomrec::tools::bundles
