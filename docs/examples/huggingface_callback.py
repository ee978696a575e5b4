"""A callback for the Trainer of Hugging Face's transformers: labels for steps, marks for epochs.

    from huggingface_callback import OOMRecCallback

    trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=[OOMRecCallback()])
    with oomrec.capture_oom("train", objects=True):
        trainer.train()

The Trainer does not report exceptions to callbacks, so wrap `train()` in `capture_oom`. Run it under the recorder
(`oomrec run train.py`); without it, the exception and the arrays and tensors are recorded, but no stacks.
"""

import contextlib

import oomrec
import oomrec.torch
from transformers import TrainerCallback


class OOMRecCallback(TrainerCallback):
    """One label for each hundred steps, so that a long training stays within a recording's 4,096 labels."""

    def __init__(self, history=100_000, steps=100):
        self._history = history
        self._steps = steps
        self._labels = contextlib.ExitStack()

    def on_train_begin(self, args, state, control, **kwargs):
        self.attachment = oomrec.torch.attach(history=self._history)

    def on_train_end(self, args, state, control, **kwargs):
        self._labels.close()
        self.attachment.detach()

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step % self._steps == 0:
            self._begin(f"steps from {state.global_step}")

    def on_epoch_end(self, args, state, control, **kwargs):
        oomrec.mark(f"end of epoch {state.epoch:.0f}")

    def on_evaluate(self, args, state, control, **kwargs):
        oomrec.mark(f"evaluated at step {state.global_step}")

    def _begin(self, label):
        self._labels.close()
        self._labels.enter_context(oomrec.context(label))
