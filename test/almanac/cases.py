"""What is asked: schedules, and instants after which to look; what the server says to them, and how it differs from what is expected."""
import datetime
import random
from typing import NamedTuple

import psycopg

from almanac.entries import SECOND, Generator, Interval
from almanac.zones import DAY, epoch
from catalog.database import db

ASK = """
    SELECT ARRAY(
        SELECT (extract(epoch FROM run) * 1000000)::bigint
        FROM jobq.next_runs(schedule, count, %(zone)s, timestamptz 'epoch' + after * interval '1 us') AS run)
    FROM unnest(%(schedules)s::text[], %(counts)s::int[], %(afters)s::bigint[]) WITH ORDINALITY AS asked (schedule, count, after, place)
    ORDER BY place"""

FIRST, LAST = epoch('1970-01-01'), epoch('2100-12-31')
LEAP_DAYS = [epoch(f'{year}-02-29') for year in range(1972, 2100, 4)] + 4 * [epoch('2100-02-28')]  # 2100 has none


class Case(NamedTuple):
    schedule: object  # an Entry or an Interval
    count: int
    after: int  # microseconds


class Cases:
    def __init__(self, seed, zone, oracle):
        self.random = random.Random(f'{seed} {zone.name} after')
        self.generator = Generator(f'{seed} {zone.name}')
        self.zone, self.oracle = zone, oracle
        self.impossible = []
        changes = [(a, b) for a, b in zip(zone.stretches, zone.stretches[1:]) if FIRST <= b.start < LAST]
        self.changes = [b.start for _, b in changes]
        # Odd ones are few.
        self.weights = [1 if abs(b.offset - a.offset) == 3600 else 20 for a, b in changes]

    def make(self):
        if self.random.random() < 0.03:
            return Case(self.generator.interval(), self.random.choice([1, 5]), self.after()[0])
        while True:
            after, near = self.after()
            entry = self.generator.entry(self.zone.local(near))
            if self.oracle.can_be(entry):
                return Case(entry, 5 if self.random.random() < 0.15 else 1, after)
            self.impossible.append(entry)

    def after(self):
        """An instant in microseconds, and what it is near to in seconds."""
        way = self.random.random()
        if way < 0.5 and self.changes:
            near, = self.random.choices(self.changes, self.weights)
            seconds = near + self.beside()
        elif way < 0.6:
            seconds = near = self.random.choice(LEAP_DAYS) + self.random.randint(-3 * DAY, 3 * DAY)
        else:
            seconds = near = self.random.randrange(FIRST, LAST)
        return seconds * SECOND + self.random.choice([0, 0, 1, SECOND - 1, self.random.randrange(SECOND)]), near

    def beside(self):
        reach = self.random.choice([1, 60, 1800, 3600, 7200, DAY, 3 * DAY])
        return self.random.choice([-reach, reach, self.random.randint(-reach, reach)])


def ask(zone, cases):
    """The server's answers: lists of instants in microseconds, or errors."""
    values = {'zone': zone.name, 'schedules': [c.schedule.text for c in cases], 'counts': [c.count for c in cases],
              'afters': [c.after for c in cases]}
    try:
        return [instants for instants, in db.run(ASK, values)]
    except psycopg.Error as error:
        return [str(error)] if len(cases) == 1 else [answer for case in cases for answer in ask(zone, [case])]


def expected(oracle, zone, case):
    """In microseconds; ends early at the horizon."""
    if isinstance(case.schedule, Interval):
        return [case.after + n * case.schedule.length for n in range(1, case.count + 1)]
    answer, instant = [], case.after // SECOND
    while len(answer) < case.count and (instant := oracle.next(case.schedule, zone, instant)) is not None:
        answer.append(instant * SECOND)
    return answer


def agree(zone, case, answer, right):
    return (isinstance(answer, list) and len(answer) == case.count and answer[:len(right)] == right
            and all(instant >= zone.horizon * SECOND for instant in answer[len(right):]))


def refused(entry):
    """Whether the server says that no date is right."""
    try:
        db.run('SELECT * FROM jobq.next_runs(%s)', [entry.text])
    except psycopg.Error as error:
        return error.sqlstate[:2] == '22'
    return False


def local_text(instant, zone):
    """An instant as the zone's local time, with its offset."""
    offset = zone.local(instant // SECOND) - instant // SECOND
    east = datetime.timezone(datetime.timedelta(seconds=offset))
    return (datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(microseconds=instant)).astimezone(east).isoformat(' ')


def said(zone, answer):
    if isinstance(answer, str):
        return answer
    return ', '.join(local_text(instant, zone) for instant in answer) or 'none before the horizon'


def difference(zone, case, answer, right):
    """As a line for the shell, and what it should have shown."""
    schedule = case.schedule.text.replace('\t', '\\t').replace('\n', '\\n')
    after = local_text(case.after, zone)
    yield (f"""psql -c "SET timezone = '{zone.name}'" -c "SELECT * """
           f"""FROM jobq.next_runs(E'{schedule}', {case.count}, '{zone.name}', '{after}')\"""")
    yield f'    says     {said(zone, answer)}'
    yield f'    expected {said(zone, right)}'
