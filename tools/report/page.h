// A report's page: one HTML file that needs no other.
//
// What it looks like is tools/report/page/, put together when oomrec is built and carried by the
// command; here it gets its title, the view it opens at and its data.
#pragma once

#include <string>
#include <string_view>

namespace oomrec::tools {

// `data`: any bytes. `view`: empty, or one the page knows, such as "flame".
std::string report_page(std::string_view title, std::string_view view, const std::string& data);

}  // namespace oomrec::tools
