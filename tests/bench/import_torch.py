"""import_torch.py: what the import alone costs."""

import torch  # noqa: F401
