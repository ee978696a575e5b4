"""A shop's web server without a network: python -m shop sessions|pages|orders|year."""

import random
import sys
import time

from shop import orders, pages, report, sessions


class Server:
    def __init__(self, cause):
        self.cause = cause
        self.store = sessions.Store()

    def handle(self, number):
        if self.cause == "sessions":
            self.store.open(f"user-{number}")
        elif self.cause == "pages":
            pages.render(number)
        elif self.cause == "orders":
            orders.place(number)

    def serve(self):
        for number in range(10**9):
            self.handle(number)
            if number % 5 == 0:
                report.of_the_day(random.randrange(100, 200))
            if self.cause == "year" and number == 150:
                report.of_the_year()
            time.sleep(0.012)


def main():
    stock = [bytes(1 << 20) for _ in range(12)]
    Server(sys.argv[1]).serve()
    return stock


if __name__ == "__main__":
    main()
