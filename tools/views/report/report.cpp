#include "tools/views/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/redact/job.h"
#include "tools/bundles/redact/scratch_directory.h"
#include "tools/views/report/data.h"

namespace oomrec::tools::views {

std::string report_of(const bundles::Source& source, const InitialView& initial_view) {
  const ReportData data = report_data(source);
  const auto label = std::find(data.labels.begin(), data.labels.end(), initial_view.label);
  if (!initial_view.label.empty() && label == data.labels.end()) {
    throw Error{
        Exit::nothing_found,
        fmt::format("nothing was allocated under the label '{}'", printable(initial_view.label)),
        "Leave --label out: the page then lists the labels."};
  }
  return report_page(report_title(source), initial_view, data.bytes);
}

std::string redacted_report_of(const bundles::Source& source, const InitialView& initial_view) {
  const bundles::ScratchDirectory scratch;
  const std::filesystem::path bundle =
      scratch.path() / (source.bundle.empty() ? "recording" : source.bundle.filename());
  source.is_job() ? bundles::write_redacted_job(source, bundle)
                  : bundles::write_redacted(source, bundle);
  return report_of(bundles::open_source(bundle), initial_view);
}

}  // namespace oomrec::tools::views
