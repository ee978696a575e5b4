#!/bin/sh
# Uses the installed Debian package: fails at the first thing that does not work. For `scripts/package try`.
set -eux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OOMREC_DUMP_DIR="$work/dumps"

# A program that a limit ends, and its bundle.
code=0
oomrec run --limit 64M -- perl -e '$x = "a" x (shift)' 100000000 || code=$?
[ "$code" != 0 ]
oomrec show > shown
grep -q soft_limit shown
grep -q '^holders' shown
LD_PRELOAD=$(oomrec lib) perl -e 1

# What other programs read.
echo '#include <oomrec.h>' | cc -fsyntax-only -xc -
bash -n /usr/share/bash-completion/completions/oomrec.bash
# dpkg leaves the documentation out of a minimal image.
[ ! -d /usr/share/man/man1 ] || man -w oomrec

# The unit, by an instance, because the template has no user.
cp "$(dpkg-query -L oomrec | grep -F oomrec-watch@.service)" oomrec-watch@root.service
systemd-analyze verify --man=no ./oomrec-watch@root.service 2> complaints
[ ! -s complaints ] || { cat complaints; exit 1; }
