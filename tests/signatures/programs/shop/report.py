"""Reports: the one of the day is small and often made, the one of the year needs more than there is."""


def of_the_day(rows):
    lines = bytearray(rows * 10_000)
    return len(lines)


def of_the_year():
    months = []
    for month in range(1000):
        months.append(read_month(month))
    return months


def read_month(month):
    return [bytearray(400_000) for _ in range(4)]
