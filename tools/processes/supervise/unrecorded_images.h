// Programs that processes of a run have started without the recorder, as `env -i` does: the hooks
// of exec note it (common/session/unrecorded_notes.h).
#pragma once

#include <string>

namespace oomrec::tools::processes {

struct Launched;

// Says which ones, and what to write instead; takes their notes. Of a run within another run, those
// of its own processes as far as it has seen them: the outer run says the others. Empty: there are
// none.
std::string take_unrecorded_line(const Launched& launched);

}  // namespace oomrec::tools::processes
