"""Sessions that nobody closes."""


class Session:
    def __init__(self, user):
        self.user = user
        self.basket = []


class Store:
    def __init__(self):
        self.by_user = {}

    def open(self, user):
        session = self.by_user[user] = Session(user)
        self.fill(session)
        return session

    def fill(self, session):
        for article in range(3):
            session.basket.append(bytearray(80_000 + article))
