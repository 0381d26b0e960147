"""Zones as the server knows them: stretches of one offset, found by looking at its local time again and again."""
import bisect
import random
from typing import NamedTuple

from catalog.database import db

# What has odd shifts, lost or doubled days and midnights, offsets with minutes and seconds, shifts by decree.
ZONES = """Africa/Abidjan Africa/Cairo Africa/Casablanca Africa/El_Aaiun Africa/Monrovia Africa/Windhoek America/Asuncion America/Caracas
    America/Godthab America/Havana America/Los_Angeles America/New_York America/Phoenix America/Santiago America/Sao_Paulo America/Scoresbysund
    America/St_Johns Antarctica/Casey Antarctica/Troll Asia/Amman Asia/Beirut Asia/Gaza Asia/Kathmandu Asia/Kolkata Asia/Pyongyang
    Asia/Riyadh Asia/Tehran Asia/Tokyo Atlantic/Azores Australia/Adelaide Australia/Eucla Australia/Lord_Howe Etc/GMT+12 Etc/GMT-14 Europe/Berlin
    Europe/Dublin Europe/Istanbul Europe/Lisbon Europe/London Europe/Moscow Pacific/Apia Pacific/Auckland Pacific/Chatham Pacific/Enderbury
    Pacific/Fiji Pacific/Kiritimati Pacific/Kwajalein Pacific/Tongatapu UTC""".split()

# The first instant asked for is in 1970, the last in 2100; after the horizon an answer is `later`, no more.
FROM, HORIZON = '1969-12-01', '2105-01-01'

DAY = 86_400
FOREVER = 10_000 * 366 * DAY

# An hour in which the clock does not move on by an hour holds a change, and so do its minute and its second. To begin with steps of an hour
# would take four times as long; no zone changes to and fro within six.
CHANGES = """
    SELECT extract(epoch FROM at)::bigint, extract(epoch FROM (at AT TIME ZONE %(zone)s) - (at AT TIME ZONE 'UTC'))::int
    FROM (
        SELECT %(from)s::timestamptz
        UNION ALL
        SELECT s + '1 s'
        FROM generate_series(%(from)s::timestamptz, %(horizon)s, '6 h') q
        CROSS JOIN generate_series(q, q + interval '5 h', '1 h') h
        CROSS JOIN generate_series(h, h + interval '59 min', '1 min') m
        CROSS JOIN generate_series(m, m + interval '59 s', '1 s') s
        WHERE (q + interval '6 h') AT TIME ZONE %(zone)s - q AT TIME ZONE %(zone)s <> interval '6 h'
            AND (h + interval '1 h') AT TIME ZONE %(zone)s - h AT TIME ZONE %(zone)s <> interval '1 h'
            AND (m + interval '1 min') AT TIME ZONE %(zone)s - m AT TIME ZONE %(zone)s <> interval '1 min'
            AND (s + interval '1 s') AT TIME ZONE %(zone)s - s AT TIME ZONE %(zone)s <> interval '1 s') AS change (at)
    ORDER BY 1"""

LOCAL_TIMES = """
    SELECT at, extract(epoch FROM (to_timestamp(at) AT TIME ZONE %(zone)s) AT TIME ZONE 'UTC')::bigint
    FROM unnest(%(instants)s::bigint[]) AS at"""


def epoch(date):
    return db.rows(f"SELECT extract(epoch FROM timestamptz '{date} UTC')::bigint")[0][0]


class Stretch(NamedTuple):
    """The instants from start to before end, in seconds since 1970, of which each is offset seconds behind its local time."""
    start: int
    end: int
    offset: int


class Zone:
    def __init__(self, name):
        self.name = name
        self.horizon = epoch(HORIZON)
        rows = db.run(CHANGES, {'zone': name, 'from': FROM + ' UTC', 'horizon': HORIZON + ' UTC'}).fetchall()
        self.starts = [-FOREVER, *(at for at, _ in rows[1:])]
        ends = [*self.starts[1:], self.horizon]
        self.stretches = [Stretch(start, end, offset) for start, end, (_, offset) in zip(self.starts, ends, rows)]
        self.has_whole_minutes = not any(number % 60 for number in self.starts[1:] + [s.offset for s in self.stretches])

    def stretches_from(self, instant):
        return self.stretches[bisect.bisect(self.starts, instant) - 1:]

    def local(self, instant):
        return instant + self.stretches[bisect.bisect(self.starts, instant) - 1].offset

    def highest_local(self, instant):
        """What the latest time is that the local clock has shown up to the instant. No clock has been set back by more than a day."""
        past = [s for s in self.stretches_from(instant - 2 * DAY) if s.start <= instant]
        return max(min(s.end - 1, instant) + s.offset for s in past)

    def wrong_local_times(self, seed):
        """Where the server's local time is not that of the stretches: at random instants, and on either side of each change."""
        rng = random.Random(f'{seed} {self.name}')
        instants = [rng.randrange(self.horizon) for _ in range(500)]
        instants += [start + n for start in self.starts[1:] for n in (-1, 0)]
        for at, local in db.run(LOCAL_TIMES, {'zone': self.name, 'instants': instants}):
            if local != self.local(at):
                yield f'the local time at {at} is {local} for the server, {self.local(at)} by the stretches'
