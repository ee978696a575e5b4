// Ends of a process, each in a few lines: what `oomrec simulate` does to itself. None of them
// returns, where it comes about.
#pragma once

namespace oomrec::tools::processes {

// After a refusal.
void use_null();
void leave_bad_alloc_uncaught();
void give_up_after_refusal();

// Without one.
void use_wild_pointer();
void be_killed();            // SIGKILL
void be_terminated();        // SIGTERM
void be_killed_in_cgroup();  // by the kernel: told on the stage
void be_killed_by_machine();
void fill_shared_memory();

// Returns when the kernel has killed a worker: told on the stage, too.
void lose_a_worker();

// Returns: a process near its limit that goes on for a moment.
void stay_near_limit();

}  // namespace oomrec::tools::processes
