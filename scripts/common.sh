# Functions shared by the scripts. Each step prints one line; its output appears only if it fails.
# Sourced by a POSIX shell at the top of the source tree.

say() { printf '%s\n' "== $*"; }

fail() {
  printf '%s\n' "$script: $1" >&2
  [ $# -lt 2 ] || printf '  %s\n' "$2" >&2
  exit 1
}

# took START: prints how long a step took that began at START (date +%s), unless it was short.
took() {
  seconds=$(($(date +%s) - $1))
  [ "$seconds" -lt 10 ] || printf '   took %d:%02d min\n' $((seconds / 60)) $((seconds % 60))
}

# quietly WHAT COMMAND…: prints one line, and the command's output only if it fails.
quietly() {
  say "$1"
  shift
  quietly_log=$(mktemp)
  quietly_start=$(date +%s)
  if "$@" > "$quietly_log" 2>&1; then
    rm -f "$quietly_log"
    took "$quietly_start"
  else
    quietly_code=$?
    tail -n 200 "$quietly_log" >&2
    rm -f "$quietly_log"
    return "$quietly_code"
  fi
}

# compile DIR TARGET…: prints ninja's progress, in place on a terminal, else every 20 seconds.
compile() {
  say "compiling into $1"
  compile_start=$(date +%s)
  { NINJA_STATUS='[%f/%t] ' "${NINJA:-ninja}" -C "$@" 2>&1 || echo "ninja failed"; } | show_progress || return 1
  took "$compile_start"
}

# Reads ninja's lines. If the last one is "ninja failed", prints all of them and fails.
show_progress() {
  progress_log=$(mktemp)
  due=$(($(date +%s) + 20))
  while IFS= read -r line; do
    last=$line  # read empties it at the end
    printf '%s\n' "$line" >> "$progress_log"
    case $line in
      '['[0-9]*']'*) far=${line%%]*} far=${far#?} far="${far%/*} of ${far#*/}" ;;
      *) continue ;;
    esac
    if [ -t 1 ]; then
      printf '\r   %s' "$far"
    elif [ "$(date +%s)" -ge "$due" ]; then
      echo "   $far"
      due=$(($(date +%s) + 20))
    fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
  [ "$last" != "ninja failed" ] || tail -n 200 "$progress_log" >&2
  rm -f "$progress_log"
  [ "$last" != "ninja failed" ]
}

# copy_objects FROM TO: starts a build folder with the objects of another. ninja compares each object's
# command with the one that made it, and recompiles those that differ.
copy_objects() {
  mkdir "$2"
  (cd "$1" && tar -cf - --exclude=./tests .ninja_log .ninja_deps common precompiled recorder tools subprojects ./*.p) |
    tar -xf - -C "$2"
  # Joined sources name their build folder, and are made anew where they differ.
  find "$2" -name '*-unity*.cpp' | while read -r source; do
    sed "s|^#include<$PWD/$1/|#include<$PWD/$2/|" "$source" > "$source.new"
    touch -r "$source" "$source.new"
    mv "$source.new" "$source"
  done
}

# option_of DIR OPTION: prints the value of a build folder's option.
option_of() {
  "$meson" introspect --buildoptions "$1" | /usr/bin/python3 -c 'import json, sys
print({row["name"]: row["value"] for row in json.load(sys.stdin)}[sys.argv[1]])' "$2"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# need_package_architecture ARCH: fails unless a Debian package is made for it.
need_package_architecture() {
  case $1 in
    amd64 | arm64) ;;
    *) fail "no package is made for the architecture $1" "--arch takes amd64 or arm64." ;;
  esac
}

# is_installed PACKAGE: for this machine's architecture, whatever others it has.
is_installed() {
  dpkg-query -W -f='${db:Status-Status} ${Architecture}\n' "$1" 2> /dev/null |
    grep -qx -e "installed $(dpkg --print-architecture)" -e 'installed all'
}

install_now() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update || true
  # Another run may hold the lock: scripts/test installs in two places at once.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"
}

# need_packages PACKAGE…: installs those that are missing, and then sets $packages_changed. Fails if that is not possible.
packages_changed=
need_packages() {
  missing=
  for each_package in "$@"; do is_installed "$each_package" || missing="$missing $each_package"; done
  [ -n "$missing" ] || return 0
  if ! command -v apt-get > /dev/null; then
    echo "$script: this is no Debian; packages to install by hand:$missing" >&2
    return 1
  fi
  if [ "$(id -u)" != 0 ] && ! sudo -n true 2> /dev/null; then
    echo "$script: packages are missing, and installing them needs root. As root:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
    return 1
  fi
  # shellcheck disable=SC2086 # a list of words
  quietly "installing$missing" install_now $missing || return 1
  packages_changed=yes
  find_tools
}

# What the library and the command are compiled with, as debian/control lists it, too.
build_packages="g++ meson ninja-build pkg-config libdw-dev libspdlog-dev nlohmann-json3-dev libcli11-dev \
  libncurses-dev zlib1g-dev libbz2-dev liblzma-dev xz-utils"

# has_hash FILE SHA256
has_hash() { [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status; }

# The Debian mirrors that the machine's apt uses, well-known ones first. The pool of each holds the
# packages of all supported releases. $OOMREC_DEBIAN_MIRROR comes before all of them.
mirrors() {
  [ -z "${OOMREC_DEBIAN_MIRROR:-}" ] || echo "${OOMREC_DEBIAN_MIRROR%/}/"
  apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' 2> /dev/null || true
  apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 2> /dev/null || true
}

# fetch_from_pool PATH SHA256 FILE: fetches a file of Debian's archive. The hash makes any mirror trustworthy.
# apt-helper, a part of apt, downloads through the machine's proxy, as apt does. Fails if no mirror had it.
fetch_from_pool() {
  ! has_hash "$3" "$2" || return 0
  for mirror in $(mirrors | awk '!seen[$0]++'); do
    ! quietly "fetching $mirror$1" /usr/lib/apt/apt-helper -q -o APT::Sandbox::User=root \
      download-file "$mirror$1" "$3" "SHA256:$2" || return 0
  done
  printf '%s\n' "$script: $(basename "$1") could not be downloaded" \
    "  Is there a network, and a mirror of Debian in apt's sources? OOMREC_DEBIAN_MIRROR=URL names another;" \
    "  without one, put the file at $3" >&2
  return 1
}

# need_venv BUILD: sets $venv to the build folder's Python environment, and creates it if it is missing.
need_venv() {
  venv=$1/venv
  [ -x "$venv/bin/pip" ] || quietly "making $venv" /usr/bin/python3 -m venv "$venv"
}

# lacking_modules PACKAGE[==RELEASE]…: prints those that $venv lacks.
lacking_modules() {
  "$venv/bin/python" - "$@" << 'END'
import sys
from importlib.metadata import PackageNotFoundError, version

for requirement in sys.argv[1:]:
    name, _, release = requirement.partition("==")
    try:
        is_there = version(name) == release or not release
    except PackageNotFoundError:
        is_there = False
    if not is_there:
        print(requirement, end=" ")
END
}

# pip_install PACKAGE…: Python itself compiles what is imported, a small part of what pip would compile.
pip_install() {
  quietly "installing $*" timeout 900 "$venv/bin/pip" install -q --no-compile "$@"
}

# need_modules PACKAGE[==RELEASE]…: installs those that $venv lacks. Fails if one is not available.
need_modules() {
  modules_lack=$(lacking_modules "$@")
  [ -n "$modules_lack" ] || return 0
  # Together in half the time; if one is not available, pip installs none of them.
  # shellcheck disable=SC2086 # a list of words
  pip_install $modules_lack 2> /dev/null || for module in $modules_lack; do pip_install "$module" || true; done
  modules_lack=$(lacking_modules "$@")
  [ -z "$modules_lack" ] || { say "cannot be installed: $modules_lack"; return 1; }
}

# The CPU-only torch: the default package brings gigabytes of CUDA.
torch=torch==2.13.0+cpu

# GPU clients, which run on the fake drivers of the tests.
gpu_clients='numba==0.68.1 cuda-bindings==13.5.0 cuda-core==1.2.2'

# The distribution's own tools: wrappers of Python version managers often precede them in PATH.
# need_packages calls this again, because it may have installed them, and so do scripts that run scripts/build.
find_tools() {
  meson=meson
  [ ! -x /usr/bin/meson ] || meson=/usr/bin/meson
  [ -n "${NINJA:-}" ] || [ ! -x /usr/bin/ninja ] || export NINJA=/usr/bin/ninja
}
find_tools

# need_linter NAME RELEASE: sets $linter to exactly that release, installed into build/lint.
need_linter() {
  linter=build/lint/bin/$1
  if [ -x "$linter" ] && "$linter" --version | grep -qF "$1 $2"; then return; fi
  need_packages python3-venv || exit 1
  quietly "installing $1" sh -c \
    "/usr/bin/python3 -m venv build/lint && build/lint/bin/pip install -q $1==$2"
}

need_ruff() {
  need_linter ruff 0.17.6
  ruff=$linter
}
