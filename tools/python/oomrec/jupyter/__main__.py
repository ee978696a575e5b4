"""The command line `python -m oomrec.jupyter`: installs, removes and starts the recorded kernel."""

from __future__ import annotations

import argparse
import sys

from .._impl.usage import bytes_of
from . import _kernel

_OPTIONS = {
    "limit": (
        "SIZE",
        "the kernel may allocate at most SIZE, such as 8G; beyond it the cell gets a MemoryError",
    ),
    "mode": ("MODE", "sampled (the default) or exact: every allocation"),
    "dump_dir": ("DIR", "where bundles go (oom_dumps in the notebook's directory)"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m oomrec.jupyter",
        description="A recorded Jupyter kernel, with the magic %%oomrec.",
        epilog="example: python -m oomrec.jupyter install --user --limit 8G",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    install = commands.add_parser("install", help="add the kernel to Jupyter")
    target = install.add_mutually_exclusive_group()
    target.add_argument("--user", action="store_true", help="for this user (the default)")
    target.add_argument(
        "--sys-prefix", action="store_true", help="for this environment: " + sys.prefix
    )
    target.add_argument("--prefix", metavar="DIR", help="for an environment or installation in DIR")
    install.add_argument(
        "--display-name", default=_kernel.DISPLAY_NAME, metavar="TEXT", help="%(default)s"
    )
    for option, (kind, text) in _OPTIONS.items():
        choices = ("sampled", "exact", "off") if option == "mode" else None
        install.add_argument(
            "--" + option.replace("_", "-"), metavar=kind, choices=choices, help=text
        )
    remove = commands.add_parser("remove", help="remove the kernel from Jupyter")
    for command in (install, remove):
        command.add_argument(
            "--name", default=_kernel.NAME, help="Jupyter's name for the kernel (%(default)s)"
        )
    commands.add_parser("kernel", help="run the kernel; Jupyter calls this")
    return parser


def main(words: list[str]) -> int:
    if words[:1] == ["kernel"]:
        _kernel.become(words[1:])
    chosen = _parser().parse_args(words)
    try:
        if chosen.command == "install" and chosen.limit is not None:
            bytes_of(chosen.limit)
        if chosen.command == "remove":
            print(f"removed {_kernel.remove(chosen.name)}")
            return 0
        options = {
            f"OOMREC_{option.upper()}": value
            for option in _OPTIONS
            if (value := getattr(chosen, option)) is not None
        }
        prefix = sys.prefix if chosen.sys_prefix else chosen.prefix
        directory = _kernel.install(chosen.name, chosen.display_name, options, prefix)
    except (LookupError, OSError, ValueError) as error:
        print(f"oomrec.jupyter: {error}", file=sys.stderr)
        return 2
    print(f"{directory}\nThe kernel is called {chosen.display_name!r}; in its cells: %%oomrec")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
