"""A callback for Lightning: a label for every batch, and a bundle of each failure with the holders.

    import lightning
    from lightning_callback import OOMRecCallback

    lightning.Trainer(callbacks=[OOMRecCallback()]).fit(model, data)

Run it under the recorder (`oomrec run train.py`); without it, the exception and the arrays and tensors are recorded,
but no stacks.
"""

import contextlib

try:
    from lightning.pytorch import Callback
except ImportError:  # the older name of the package
    from pytorch_lightning import Callback

import oomrec
import oomrec.torch


class OOMRecCallback(Callback):
    """Labels for stages and epochs, marks at the ends of epochs, a bundle of an OOM that ends the run."""

    def __init__(self, history=100_000):
        self._history = history
        self._labels = contextlib.ExitStack()
        self._capture = oomrec.capture_oom("fit", objects=True)

    def setup(self, trainer, pl_module, stage):
        self.attachment = oomrec.torch.attach(history=self._history)
        self._capture.__enter__()

    def teardown(self, trainer, pl_module, stage):
        self._labels.close()
        self._capture.__exit__(None, None, None)
        self.attachment.detach()

    def _begin(self, label):
        self._labels.close()
        self._labels.enter_context(oomrec.context(label))

    def on_train_epoch_start(self, trainer, pl_module):
        self._begin(f"epoch {trainer.current_epoch}")

    def on_train_epoch_end(self, trainer, pl_module):
        self._labels.close()
        oomrec.mark(f"end of epoch {trainer.current_epoch}")

    def on_validation_start(self, trainer, pl_module):
        self._begin(f"validation {trainer.current_epoch}")

    def on_validation_end(self, trainer, pl_module):
        self._begin(f"epoch {trainer.current_epoch}")

    def on_exception(self, trainer, pl_module, exception):
        oomrec.mark(f"epoch {trainer.current_epoch}, step {trainer.global_step}: the run ends")
        self._capture.__exit__(type(exception), exception, exception.__traceback__)
