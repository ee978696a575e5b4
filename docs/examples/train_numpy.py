"""A training loop that leaks: it keeps every batch "for the plots at the end", until memory runs out.

Run it under a soft limit, then ask what held the memory:

    oomrec run --limit 512M -- python3 docs/examples/train_numpy.py
    oomrec show
"""

import numpy as np

CLASSES = 10
FEATURES = 4096
BATCH = 1024

random = np.random.default_rng(seed=7)
TRUTH = random.standard_normal((FEATURES, CLASSES))  # what the model should find


def make_batch(size):
    """A batch of examples and their labels: 32 MiB."""
    examples = random.standard_normal((size, FEATURES))
    labels = (examples @ TRUTH).argmax(axis=1)
    return examples, labels


class Model:
    """Softmax regression, trained by gradient descent."""

    def __init__(self):
        self.weights = np.zeros((FEATURES, CLASSES))

    def step(self, examples, labels, rate=0.05):
        scores = examples @ self.weights
        scores -= scores.max(axis=1, keepdims=True)
        likelihoods = np.exp(scores)
        likelihoods /= likelihoods.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = -np.log(likelihoods[rows, labels]).mean()
        likelihoods[rows, labels] -= 1
        self.weights -= rate / len(labels) * (examples.T @ likelihoods)
        return loss


def main():
    model = Model()
    history = []
    for step in range(1000):
        examples, labels = make_batch(BATCH)
        loss = model.step(examples, labels)
        history.append((loss, examples))  # the leak: the loss would have been enough
        kept = sum(batch.nbytes for _, batch in history)
        print(f"step {step:2}  loss {loss:.3f}  kept {kept >> 20} MiB", flush=True)


if __name__ == "__main__":
    main()
