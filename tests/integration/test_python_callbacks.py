"""docs/examples: callbacks for Lightning and Hugging Face, on stand-ins and on the real packages."""

from __future__ import annotations

import pytest
from conftest import SOURCE, metadata

PATHS = f"{SOURCE / 'tools' / 'python'}:{SOURCE / 'docs' / 'examples'}"

# Stand-ins for what the callbacks use of a package: their base class.
STAND_INS = {
    "lightning/__init__.py": "",
    "lightning/pytorch.py": "class Callback:\n    pass\n",
    "transformers.py": "class TrainerCallback:\n    pass\n",
}

# Calls as in Lightning's loops. The second epoch's batch does not fit.
LIGHTNING = """
from types import SimpleNamespace
from lightning_callback import OOMRecCallback

callback, trainer = OOMRecCallback(history=0), SimpleNamespace(current_epoch=0, global_step=0)
callback.setup(trainer, None, "fit")
try:
    for trainer.current_epoch in range(2):
        callback.on_train_epoch_start(trainer, None)
        held = bytearray(b"x" * 5_000_011)
        if trainer.current_epoch == 1:
            bytearray(1 << 40)
        callback.on_validation_start(trainer, None)
        callback.on_validation_end(trainer, None)
        callback.on_train_epoch_end(trainer, None)
except MemoryError as error:
    callback.on_exception(trainer, None, error)
callback.teardown(trainer, None, "fit")
"""

TRANSFORMERS = """
from types import SimpleNamespace
import oomrec
from huggingface_callback import OOMRecCallback

callback, state = OOMRecCallback(history=0), SimpleNamespace(global_step=0, epoch=1.0)
callback.on_train_begin(None, state, None)
try:
    with oomrec.capture_oom("train", objects=True):
        for state.global_step in range(250):
            callback.on_step_begin(None, state, None, model=None)
            if state.global_step == 210:
                held = bytearray(b"x" * 5_000_011)
                bytearray(1 << 40)
except MemoryError:
    pass
callback.on_epoch_end(None, state, None)
callback.on_train_end(None, state, None)
"""


def run_of(preload, tmp_path, program: str, stand_ins: bool):
    paths = PATHS
    if stand_ins:
        for name, text in STAND_INS.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        paths = f"{PATHS}:{tmp_path}"
    environment = {"PYTHONPATH": paths, "OOMREC_LIMIT": "4G"}
    run = preload("python3", "-c", program, env=environment, exits=0)
    return run


def assert_reported(oomrec, run, label: str, context: str) -> None:
    (bundle,) = run.bundles_for("soft_limit")
    stored = metadata(bundle)
    assert stored["exception_type"] == "MemoryError" and stored["context"] == context
    rows = oomrec.json("show", bundle)["holders"]
    held = [row for row in rows if 5_000_000 < row["bytes"] < 5_009_000]
    assert any(f"[{label}]" == frame["function"] for row in held for frame in row["stack"]), held


PROGRAMS = [(LIGHTNING, "epoch 1", "fit"), (TRANSFORMERS, "steps from 200", "train")]


@pytest.mark.needs_torch
@pytest.mark.parametrize("program, label, context", PROGRAMS, ids=["lightning", "transformers"])
def test_on_stand_ins(oomrec, preload, tmp_path, program, label, context):
    run = run_of(preload, tmp_path, program, True)
    assert_reported(oomrec, run, label, context)


REAL_LIGHTNING = """
import torch, lightning
from lightning_callback import OOMRecCallback

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        if self.current_epoch == 1:
            self.held = bytearray(b"x" * 5_000_011)
            bytearray(1 << 40)
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

data = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=4)
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, callbacks=[OOMRecCallback(history=0)],
)
try:
    trainer.fit(Model(), data)
except MemoryError:
    pass
"""

REAL_TRANSFORMERS = """
import torch, transformers, oomrec
from huggingface_callback import OOMRecCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.steps = 0
    def forward(self, x=None):
        self.steps += 1
        if self.steps == 5:
            self.held = bytearray(b"x" * 5_000_011)
            bytearray(1 << 40)
        return {"loss": self.layer(x).sum()}

arguments = transformers.TrainingArguments(
    "out", per_device_train_batch_size=4, max_steps=8, report_to=[], use_cpu=True, save_strategy="no",
    disable_tqdm=True,
)
trainer = transformers.Trainer(
    Model(), arguments, train_dataset=[{"x": torch.ones(4)}] * 40,
    callbacks=[OOMRecCallback(history=0, steps=2)],
)
try:
    with oomrec.capture_oom("train"):
        trainer.train()
except MemoryError:
    pass
"""

REAL = [
    pytest.param(
        REAL_LIGHTNING,
        "epoch 1",
        "fit",
        marks=pytest.mark.needs_module("lightning"),
        id="lightning",
    ),
    pytest.param(
        REAL_TRANSFORMERS,
        "steps from 4",
        "train",
        marks=pytest.mark.needs_module("transformers"),
        id="transformers",
    ),
]


@pytest.mark.full
@pytest.mark.parametrize("program, label, context", REAL)
def test_on_the_packages_themselves(oomrec, preload, tmp_path, program, label, context):
    run = run_of(preload, tmp_path, program, False)
    assert_reported(oomrec, run, label, context)
