"""The fields of cron entries from a seed. Each is made as the values that it means, and its text with it: nobody reads the text here."""
import random
from typing import NamedTuple


class Field(NamedTuple):
    """The values of its numbers, ranges and steps, and the rules that depend on the month."""
    text: str
    values: frozenset
    rules: tuple = ()

    @property
    def begins_with_star(self):
        return self.text[0] == '*'


class Bounds(NamedTuple):
    low: int
    high: int
    names: dict = {}

    @property
    def all(self):
        return range(self.low, self.high + 1)


SECONDS = MINUTES = Bounds(0, 59)
HOURS = Bounds(0, 23)
DAYS = Bounds(1, 31)
MONTHS = Bounds(1, 12, dict(enumerate('jan feb mar apr may jun jul aug sep oct nov dec'.split(), 1)))
WEEKDAYS = Bounds(0, 6, dict(enumerate('sun mon tue wed thu fri sat'.split())))  # 7 is no value of a star


def star(bounds):
    return Field('*', frozenset(bounds.all))


class Fields:
    """What is made is often near to a value: to the local time where the clock changes, for one."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def is_lucky(self, chance):
        return self.random.random() < chance

    def choose(self, ways):
        """One of the keys; the values are how often."""
        return self.random.choices(list(ways), ways.values())[0]

    def in_any_case(self, text):
        return text if self.is_lucky(0.8) else self.random.choice([text.upper(), text.title(), text.swapcase()])

    # Items: text and values

    def value(self, bounds, near):
        if self.is_lucky(0.6):
            return bounds.low + (near + self.random.choice([-1, 0, 0, 0, 1]) - bounds.low) % len(bounds.all)
        return self.random.choice(bounds.all)

    def said(self, bounds, value):
        if value in bounds.names and self.is_lucky(0.5):
            return self.in_any_case(bounds.names[value])
        return f'{value:02}' if self.is_lucky(0.1) else str(value)

    def one(self, bounds, near):
        value = self.value(bounds, near)
        return self.said(bounds, value), {value}

    def span(self, bounds, near):
        # Not up to the first value: a range of weekdays that ends with Sunday is another thing.
        low, high = sorted((self.value(bounds, near), self.random.choice(bounds.all[1:])))
        return f'{self.said(bounds, low)}-{self.said(bounds, high)}', {*range(low, high + 1)}

    def stepped_span(self, bounds, near):
        text, values = self.span(bounds, near)
        step = self.random.randint(1, min(len(bounds.all), len(values) + 2))
        return f'{text}/{step}', {*sorted(values)[::step]}

    def stepped_star(self, bounds, near):
        step = self.random.randint(1, len(bounds.all) if self.is_lucky(0.3) else max(2, len(bounds.all) // 4))
        return f'*/{step}', {*bounds.all[::step]}

    def star(self, bounds, near):
        return '*', {*bounds.all}

    def full_span(self, bounds, near):
        return f'{bounds.low}-{bounds.high}', {*bounds.all}

    def several(self, bounds, near):
        ways = self.random.choices([self.one, self.span, self.stepped_span], [3, 1, 1], k=self.random.randint(2, 4))
        return self.joined([way(bounds, near) for way in ways])

    def starry_list(self, bounds, near):
        """A list in which a star stands first or last."""
        items = [self.star(bounds, near), self.one(bounds, near)]
        self.random.shuffle(items)
        return self.joined(items)

    def joined(self, items):
        return ','.join(text for text, _ in items), set().union(*(values for _, values in items))

    # Fields

    def numbers(self, bounds, near, **ways):
        way = self.choose({'star': 4, 'one': 5, 'several': 2, 'span': 1, 'stepped_span': 1, 'stepped_star': 2, **ways})
        text, values = getattr(self, way)(bounds, near)
        return Field(text, frozenset(values))

    def hours(self, near):
        return self.numbers(HOURS, near, one=8, full_span=1, starry_list=1)

    def months(self, near):
        return self.numbers(MONTHS, near, star=14, starry_list=1)

    def days(self, near):
        if self.is_lucky(0.2):
            return self.with_rules(self.numbers(DAYS, near, star=0, stepped_star=1), self.day_rule)
        return self.numbers(DAYS, near, star=10, starry_list=1)

    def weekdays(self, near):
        if self.is_lucky(0.12):
            return self.with_rules(self.numbers(WEEKDAYS, near, star=0, stepped_star=1), self.weekday_rule)
        if self.is_lucky(0.1):
            return self.up_to_seven()
        return self.numbers(WEEKDAYS, near, star=14, starry_list=1)

    def up_to_seven(self):
        """7, or a range that ends with it; Sunday's name at the end of a range is 7 too."""
        low, step = self.random.randint(1, 7), self.random.randint(1, 3)
        if low == 7:
            return Field('7', frozenset({7}))
        text = f'{self.said(WEEKDAYS, low)}-{self.random.choice(["7", self.in_any_case("sun")])}'
        return Field(text if step == 1 else f'{text}/{step}', frozenset(range(low, 8, step)))

    # Rules: text, and what the oracle obeys

    def with_rules(self, numbers, rule):
        """A list of rules, now and then with numbers among them."""
        texts, rules = zip(*(rule() for _ in range(self.choose({1: 6, 2: 2, 3: 1}))))
        if self.is_lucky(0.8):
            return Field(','.join(texts), frozenset(), rules)
        place = self.random.randint(0, len(texts))
        return Field(','.join([*texts[:place], numbers.text, *texts[place:]]), numbers.values, rules)

    def day_rule(self):
        way = self.choose({'last': 3, 'before_last': 2, 'last_working': 2, 'nearest': 3})
        day = self.random.choice([1, 28, 29, 30, 31, *[self.random.randint(1, 31)] * 5])
        return {'last': (self.random.choice('Ll$'), ('before_last', 0)),
                'before_last': (f'{self.random.choice("Ll")}-{min(day, 30)}', ('before_last', min(day, 30))),
                'last_working': (self.in_any_case('LW'), ('last_working',)),
                'nearest': (f'{day}{self.random.choice("Ww")}', ('nearest', day))}[way]

    def weekday_rule(self):
        weekday, week = self.random.randint(0, 7), self.random.randint(1, 5)
        name = self.said(WEEKDAYS, weekday)
        if self.is_lucky(0.4):
            return f'{name}{self.random.choice("Ll")}', ('last_such', weekday % 7)
        return f'{name}#{week}', ('such', weekday % 7, week)
