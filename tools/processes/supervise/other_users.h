// Work for processes of a run that are another user's: root started a program that became a user's
// and then executed another one, as containers' entry points do (gosu, setpriv, su).
//
// What another user may write is read with that user's rights only: a child of this command gives
// up root's for good and does the work. All that comes back from it are process ids.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace oomrec::tools::processes {

struct User {
  uid_t user = 0;
  gid_t group = 0;
  friend auto operator<=>(const User&, const User&) = default;
};

// As whom a process runs, also when it has ended and was not waited for; nothing: there is none.
std::optional<User> user_of(pid_t);

// Other users whose directory of recordings below one of `bases` has changed since then.
std::set<User> users_who_recorded_since(std::uint64_t realtime_ns,
                                        const std::vector<std::filesystem::path>& bases);

// What `work` returns in a child with this user's rights, home directory and no more than the first
// 100,000 of its process ids. Empty if this process may not become the user, or the child ended
// early.
std::set<pid_t> as_user(const User&, const std::function<std::set<pid_t>()>& work);

}  // namespace oomrec::tools::processes
