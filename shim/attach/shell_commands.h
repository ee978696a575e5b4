// system and popen in a program that was attached to: the shell is recorded, too.
#pragma once

namespace oomrec::shim {

// Adds their redirections.
void redirect_shell_commands() noexcept;

}  // namespace oomrec::shim
