"""The recorded Jupyter kernel and `%%oomrec` in it, with real kernels and Jupyter's own protocol."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SOURCE

pytest.importorskip("ipykernel")
jupyter_client = pytest.importorskip("jupyter_client")

PACKAGE = SOURCE / "tools" / "python"
BUILD = Path(os.environ.get("OOMREC_TEST_BUILD", SOURCE / "build")).resolve()
TIMEOUT_S = 300


def environment(directory: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OOMREC_")}
    return {
        **kept,
        "PYTHONPATH": str(PACKAGE),
        "OOMREC_LIBRARY": str(BUILD / "liboomrec.so"),
        "OOMREC_COMMAND": str(BUILD / "oomrec"),
        "OOMREC_SESSION_DIR": str(directory / "sessions"),
        "OOMREC_DUMP_DIR": str(directory / "oom_dumps"),
        "JUPYTER_PATH": str(directory / "prefix" / "share" / "jupyter"),
        "JUPYTER_DATA_DIR": str(directory / "data"),
        "IPYTHONDIR": str(directory / "ipython"),
    }


def command(directory: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oomrec.jupyter", *words],
        env=environment(directory) | env,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


class Kernel:
    """A kernel started by Jupyter. `run` returns the output of a cell."""

    def __init__(self, directory: Path, argv: list[str] | None = None):
        manager = jupyter_client.KernelManager(kernel_name="oomrec")
        spec_dir = directory / "prefix" / "share" / "jupyter" / "kernels" / "oomrec"
        spec = json.loads((spec_dir / "kernel.json").read_text())
        manager._kernel_spec = jupyter_client.kernelspec.KernelSpec(
            resource_dir=str(spec_dir), **{**spec, "argv": argv or spec["argv"]}
        )
        (directory / "sessions").mkdir(mode=0o700, exist_ok=True)
        manager.start_kernel(env=environment(directory) | spec["env"], cwd=str(directory))
        self.manager = manager
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT_S)

    def run(self, code: str) -> dict[str, str]:
        """{"stdout", "html", "error"} of the cell."""
        shown = {"stdout": "", "html": "", "error": ""}

        def take(message: dict) -> None:
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                shown["stdout"] += content["text"]
            elif message["msg_type"] == "display_data":
                shown["html"] += content["data"].get("text/html", "")
            elif message["msg_type"] == "error":
                shown["error"] += content["ename"]

        self.client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=take)
        return shown

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("jupyter")
    run = command(directory, "install", "--prefix", str(directory / "prefix"), "--limit", "600M")
    assert run.returncode == 0, run.stderr
    return directory


@pytest.fixture(scope="module")
def kernel(installed):
    kernel = Kernel(installed)
    yield kernel
    kernel.close()


def test_the_kernel_is_ipykernel_under_the_recorder(kernel):
    shown = kernel.run("import os, oomrec; print(oomrec.is_active(), os.environ['LD_PRELOAD'])")
    assert shown["stdout"].startswith("True") or "active=True" in shown["stdout"], shown
    assert "liboomrec.so" in shown["stdout"]


def test_a_cell_is_followed_by_its_report(kernel):
    shown = kernel.run(
        "%%oomrec --height 300\nkept = [bytearray(1 << 20) for _ in range(24)]\nprint('ran')"
    )
    assert shown["stdout"] == "ran\n" and shown["error"] == ""
    frame = re.fullmatch(
        r'<iframe srcdoc="(.*)" sandbox="([^"]*)" style="([^"]*)"></iframe>', shown["html"], re.S
    )
    assert frame is not None, shown["html"][:300]
    assert "allow-same-origin" not in frame[2] and "height: 300px" in frame[3]
    page = html.unescape(frame[1])
    assert re.search(r'<html lang="en" data-view="flame" data-label="cell \d+"\s', page)
    assert kernel.run("print(len(kept))")["stdout"] == "24\n"  # it belongs to the notebook


def test_a_label_without_allocations_has_no_report(kernel):
    """For example, of a cell that allocates almost nothing."""
    code = "from oomrec.jupyter._magic import _report\nprint(_report('cell of nobody', 'flame'))"
    shown = kernel.run(code)["stdout"]
    assert shown.startswith("(None, ") and "nothing that the cell allocated was recorded" in shown


def test_a_failure_is_the_cells_error_and_has_a_bundle(kernel, installed):
    shown = kernel.run("%%oomrec\nhuge = bytearray(2 << 30)")
    assert shown["error"] == "MemoryError"
    bundle = kernel.run("import oomrec; print(oomrec.last_bundle())")["stdout"].strip()
    assert Path(bundle).parent == installed / "oom_dumps"
    metadata = json.loads((Path(bundle) / "metadata.json").read_text())
    assert metadata["request"]["size"] >= 2 << 30 and metadata["context"].startswith("cell ")


def test_the_magic_reports_an_unrecorded_kernel(installed):
    plain = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = Kernel(installed, plain)
    try:
        shown = kernel.run("%load_ext oomrec.jupyter")
        assert shown["error"] == ""
        shown = kernel.run("%%oomrec\nprint(6 * 7)")
        assert shown["stdout"].startswith("42\nThis kernel is not recorded") and shown["html"] == ""
        assert "python -m oomrec.jupyter install" in shown["stdout"]
    finally:
        kernel.close()


def test_only_the_recorded_kernel_is_removed(tmp_path):
    assert command(tmp_path, "install", "--prefix", str(tmp_path / "prefix")).returncode == 0
    place = tmp_path / "prefix" / "share" / "jupyter" / "kernels"
    assert (place / "oomrec" / "kernel.json").exists()
    (place / "other").mkdir()
    (place / "other" / "kernel.json").write_text(
        json.dumps({"argv": ["true"], "display_name": "other", "language": "python"})
    )
    refused = command(tmp_path, "remove", "--name", "other")
    assert refused.returncode == 2 and "no kernel 'other' of oomrec" in refused.stderr
    removed = command(tmp_path, "remove")
    assert (
        removed.returncode == 0 and not (place / "oomrec").exists() and (place / "other").exists()
    )


def test_missing_jupyter_packages_are_named(tmp_path):
    (tmp_path / "jupyter_client").mkdir()
    (tmp_path / "jupyter_client" / "__init__.py").write_text("raise ImportError('not here')\n")
    run = command(tmp_path, "install", PYTHONPATH=f"{tmp_path}:{PACKAGE}")
    assert run.returncode == 2 and "pip install 'oomrec[jupyter]'" in run.stderr
