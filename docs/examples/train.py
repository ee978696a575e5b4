"""A training loop that leaks: it keeps the words of every message "for the report at the end", until memory runs out.

Run it under a soft limit, then ask what held the memory:

    oomrec run --limit 128M -- python3 docs/examples/train.py
    oomrec show

Any Python 3 runs it. Its pieces are small, as those of most programs: words of 60 bytes. train_numpy.py keeps arrays.
"""

import math
import random

random.seed(7)


def read_message(number):
    """The words of one message, and whether it is spam."""
    spam = number % 3 == 0
    vocabulary = range(0, 4000) if spam else range(2000, 20_000)
    words = []
    for _ in range(40):
        words.append(f"word-{random.choice(vocabulary)}")
    return words, spam


class Filter:
    """Logistic regression on words, trained by gradient descent."""

    def __init__(self):
        self.weights = {}

    def step(self, words, spam, rate=0.1):
        score = sum(self.weights.get(word, 0.0) for word in words)
        likelihood = 1 / (1 + math.exp(-score))
        for word in words:
            self.weights[word] = self.weights.get(word, 0.0) + rate * (spam - likelihood)
        return -math.log(likelihood if spam else 1 - likelihood)


def main():
    model = Filter()
    history = []
    for step in range(1_000_000):
        words, spam = read_message(step)
        loss = model.step(words, spam)
        history.append((loss, words))  # the leak: the loss would have been enough
        if step % 10_000 == 0:
            print(f"step {step:6,}  loss {loss:.3f}  kept {len(history):,} messages", flush=True)


if __name__ == "__main__":
    main()
