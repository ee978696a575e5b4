// Where `oomrec attach` cannot load the recorder: its code in the process is not written for this
// processor.
#include "common/machine/platform.h"
#include "tools/base/error.h"
#include "tools/processes/attach/object_counts.h"
#include "tools/processes/attach/session.h"
#include "tools/processes/attach/unobserved.h"

namespace oomrec::tools::processes {
namespace {

[[noreturn]] void refuse() {
  throw Error{Exit::bad_input, "a running process cannot be recorded on " OOMREC_MACHINE,
              "Start it with the recorder: oomrec run -- PROGRAM"};
}

}  // namespace

Attached attach_to(pid_t, const std::string&,
                   const std::vector<std::pair<std::string, std::string>>&) {
  refuse();
}

Attached detach_from(pid_t) { refuse(); }

recording::ObjectCounts count_objects(pid_t) { refuse(); }

std::string_view name_of(Unobserved::Why) { return {}; }
std::vector<Unobserved> unobserved_in(const RemoteMemory&) { return {}; }
bool is_attached(const RemoteMemory&) { return false; }

}  // namespace oomrec::tools::processes
