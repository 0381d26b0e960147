"""The days of the calendar by their number since 1970-01-01."""
import calendar
import datetime
from typing import NamedTuple

FIRST, LAST = datetime.date(1969, 1, 1), datetime.date(2106, 1, 1)
EPOCH = datetime.date(1970, 1, 1).toordinal()


class Date(NamedTuple):
    day: int
    month: int
    year: int
    weekday: int  # 0 is Sunday
    length: int   # of its month

    def weekday_of(self, day):
        """The weekday of another day of its month."""
        return (self.weekday + day - self.day) % 7


def make(ordinal):
    date = datetime.date.fromordinal(ordinal)
    return Date(date.day, date.month, date.year, date.isoweekday() % 7, calendar.monthrange(date.year, date.month)[1])


DATES = [make(ordinal) for ordinal in range(FIRST.toordinal(), LAST.toordinal())]
FIRST_DAY = FIRST.toordinal() - EPOCH


def date_of(day):
    return DATES[day - FIRST_DAY]
