#include "tools/print/moment.h"

namespace oomrec::tools::print {

recording::At moment_of(const bundles::Source& source, std::string_view asked) {
  const recording::At usual = source.has_freed_most() ? recording::At::peak : recording::At::end;
  return value_named<recording::At>(recording::kAtNames, asked).value_or(usual);
}

}  // namespace oomrec::tools::print
