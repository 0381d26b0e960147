# The arithmetic of the tables: no clock, no server.

import bisect
import statistics
from dataclasses import dataclass


def percentiles(values, *numbers):
    """The percentiles of these numbers (50, 95 and 99) by their names; None for those of nothing."""
    numbers = numbers or (50, 95, 99)
    if len(values) < 2:
        return {f"p{n}": next(iter(values), None) for n in numbers}
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {f"p{n}": cuts[n - 1] for n in numbers}


def median(values):
    """The median of those that are there, None if none is."""
    found = [value for value in values if value is not None]
    return statistics.median(found) if found else None


def ratio(value, base):
    """How many times the base, None where that says nothing."""
    return value / base if value is not None and base else None


def digits(value):
    """Three of them, or all that stand before the point."""
    return "" if value is None else f"{value:.{max(0, 3 - len(str(abs(round(value)))))}f}"


def slices(seconds, length):
    """(begin, end) of the whole slices in so many seconds; what is shorter is one slice."""
    length = min(length, seconds)
    return [(number * length, (number + 1) * length) for number in range(int(seconds / length + 1e-9))]


@dataclass
class Backlog:
    """A group's jobs from when the first came until none was left."""
    group: str
    jobs: int
    begin: float
    end: float
    fair: float         # jobs that were the group's due among all that were claimed meanwhile

    @property
    def ratio(self):
        return ratio(self.jobs, self.fair)


def backlogs(arrivals, claims, weights={}):
    """What each group got, and what its weight (1) among those that had a backlog at the time made its due. Arrivals are
    (instant, group), one for each group; claims are (instant, group), one for each job, in any order."""
    claims = sorted(claims)
    left = {}
    for _, group in claims:
        left[group] = left.get(group, 0) + 1
    jobs, waiting, found = dict(left), sorted(arrivals), {}
    due, weight = 0.0, 0        # due: jobs that a group of weight 1 would have got that had always been there
    for instant, group in claims:
        while waiting and waiting[0][0] <= instant:
            begin, comer = waiting.pop(0)
            weight += weights.get(comer, 1)
            found[comer] = Backlog(comer, jobs.get(comer, 0), begin, begin, -due)
        due += 1 / weight
        left[group] -= 1
        if not left[group]:
            weight -= weights.get(group, 1)
            found[group].end, found[group].fair = instant, weights.get(group, 1) * (found[group].fair + due)
    return [backlog for backlog in found.values() if not left.get(backlog.group, 1)]


def share_in_slices(backlogs, claims, group, parts):
    """Of each part of the time: (end, share of its claims that the group got, its fair share at the part's end)."""
    claims = sorted(claims)
    instants = [instant for instant, _ in claims]
    for begin, end in parts:
        within = claims[bisect.bisect_left(instants, begin):bisect.bisect_left(instants, end)]
        active = sum(backlog.begin <= end < backlog.end for backlog in backlogs)
        if within and active:
            yield end, sum(name == group for _, name in within) / len(within), 1 / active
