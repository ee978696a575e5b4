// The death of a program without a recording: of one that the recorder could not be loaded into.
//
// Its bundle has a recording that says who died and why nothing else is known: no stacks, no
// holders. Every command reads it like any other bundle.
#pragma once

#include <filesystem>
#include <string>

#include "tools/processes/launch/program_facts.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::processes {

// Why the recorder was not in it: "prog is statically linked: …".
std::string why_unrecorded(const ProgramFacts& facts);

// `directory`: where its recording would have been. `dump_directory`: absolute.
recording::Recording recording_without_events(const ProgramFacts& facts, const std::string& why,
                                              const std::filesystem::path& directory,
                                              const std::string& dump_directory);

}  // namespace oomrec::tools::processes
