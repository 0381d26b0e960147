"""Schedules from a seed: cron entries, words and intervals, as what they mean and as text."""
from typing import NamedTuple

from almanac.days import date_of
from almanac.fields import DAYS, HOURS, MINUTES, MONTHS, SECONDS, WEEKDAYS, Field, Fields, star

SECOND = 1_000_000  # microseconds, as the server counts
LONGEST = 36_500 * 86_400 * SECOND

# Minute, hour, day, month and weekday; None is a star.
WORDS = {'yearly': (0, 0, 1, 1, None), 'annually': (0, 0, 1, 1, None), 'monthly': (0, 0, 1, None, None), 'weekly': (0, 0, None, None, 0),
         'daily': (0, 0, None, None, None), 'midnight': (0, 0, None, None, None), 'hourly': (0, None, None, None, None)}

UNITS = {1: ('s', 'sec', 'secs', 'second', 'seconds'), 60: ('min', 'mins', 'minute', 'minutes'), 3600: ('h', 'hr', 'hrs', 'hour', 'hours'),
         86_400: ('d', 'day', 'days'), 604_800: ('w', 'week', 'weeks')}


class Entry(NamedTuple):
    text: str
    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field  # 0 and 7 are Sunday

    @property
    def is_hourly(self):
        return self.hour.text == '*' or self.hour.text.startswith('*/')

    @property
    def has_whole_minutes(self):
        return self.second.values == {0}


class Interval(NamedTuple):
    text: str
    length: int  # microseconds


FULL_MINUTE = Field('0', frozenset({0}))


class Generator(Fields):
    def entry(self, near):
        """An entry that likes what is near to a local time."""
        if self.is_lucky(0.03):
            return self.word()
        clock, date = near % 86_400, date_of(near // 86_400)
        fields = [self.numbers(MINUTES, clock // 60 % 60), self.hours(clock // 3600), *self.dates(date)]
        if self.is_lucky(0.8):
            return Entry(self.spaced(fields), FULL_MINUTE, *fields)
        fields = [self.numbers(SECONDS, clock % 60), *fields]
        return Entry(self.spaced(fields), *fields)

    def dates(self, near):
        if self.is_lucky(0.3):
            return star(DAYS), star(MONTHS), star(WEEKDAYS)
        return self.days(near.day), self.months(near.month), self.weekdays(near.weekday)

    def spaced(self, fields):
        if self.is_lucky(0.9):
            return ' '.join(field.text for field in fields)
        return ''.join(self.blanks() + field.text for field in fields) + self.blanks()

    def blanks(self):
        return ''.join(self.random.choices(' \t\n', k=self.random.randint(1, 3)))

    def word(self):
        word = self.random.choice(list(WORDS))
        fields = [star(bounds) if value is None else Field(str(value), frozenset({value}))
                  for value, bounds in zip(WORDS[word], (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS))]
        return Entry('@' + self.in_any_case(word), FULL_MINUTE, *fields)

    def interval(self):
        while True:
            text, length = self.server_interval() if self.is_lucky(0.3) else self.units()
            if SECOND <= length <= LONGEST:
                return Interval(text, length)

    def units(self):
        units = self.random.sample(list(UNITS), self.choose({1: 8, 2: 3, 3: 1}))
        texts, lengths = zip(*(self.amount(unit) for unit in units))
        return ' '.join(texts), sum(lengths)

    def amount(self, unit):
        number = self.random.choice([1, 2, 5, 90, self.random.randint(0, 10 ** self.random.randint(1, 6))])
        fraction, millionths = self.fraction()
        text = f'{number}{fraction}{self.random.choice(["", " "])}{self.random.choice(UNITS[unit])}'
        return text, (number * SECOND + millionths) * unit

    def fraction(self):
        """Its text, with the point, and its millionths; mostly there is none."""
        if self.is_lucky(0.8):
            return '', 0
        digits = ''.join(self.random.choices('0123456789', k=self.random.randint(1, 6)))
        return f'.{digits}', int(digits.ljust(6, '0'))

    def server_interval(self):
        """As the server writes one."""
        days = self.random.randrange(400) if self.is_lucky(0.5) else 0
        hours, minutes, seconds = (self.random.randrange(n) for n in (24, 60, 60))
        fraction, millionths = self.fraction()
        text = f'{days} day{"s" if days != 1 else ""} ' if days else ''
        length = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        return f'{text}{hours:02}:{minutes:02}:{seconds:02}{fraction}', length * SECOND + millionths
