// A report's page: one HTML file that needs no other.
//
// What it looks like is tools/report/page/, put together when oomrec is built and carried by the
// command; here it gets its title, the view it opens at and its data.
#pragma once

#include <string>
#include <string_view>

namespace oomrec::tools::views {

// What the page shows at first.
struct OpensAt {
  std::string_view view;   // empty, or one that the page knows, such as "flame"
  std::string_view label;  // that blocks are shown of; empty: of all
};

// `data`: any bytes.
std::string report_page(std::string_view title, const OpensAt& opens_at, const std::string& data);

}  // namespace oomrec::tools::views
