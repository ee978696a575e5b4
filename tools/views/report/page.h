// A report's page: one self-contained HTML file.
//
// Script and style (tools/views/report/page/) are assembled when oomrec is built, and embedded in
// the command. This adds the title, the initial view and the data.
#pragma once

#include <string>
#include <string_view>

namespace oomrec::tools::views {

// What the page shows at first.
struct InitialView {
  std::string_view view;    // a view of the page, such as "flame"; empty: its default
  std::string_view label;   // only the blocks of this label; empty: all
  std::string_view frames;  // "python", "native" or "both", which is the page's default, too
};

// `data`: any bytes.
std::string report_page(std::string_view title, const InitialView& initial_view,
                        const std::string& data);

}  // namespace oomrec::tools::views
