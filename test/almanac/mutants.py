"""Oracles with one rule broken: each must come to other answers than the server, or the rule is not tested."""
from almanac.oracle import Oracle


class FiresAgainInARepeatedHour(Oracle):
    def next_fixed(self, entry, zone, after):
        instants = self.next_hourly(entry, zone, after), super().next_fixed(entry, zone, after)
        return min((instant for instant in instants if instant is not None), default=None)


class SkipsWhatIsInAGap(Oracle):
    def next_fixed(self, entry, zone, after):
        instant = super().next_fixed(entry, zone, after)
        while instant is not None and not self.is_wanted(entry, zone.local(instant)):
            instant = super().next_fixed(entry, zone, instant)
        return instant


class MovesWhatIsInAGap(Oracle):
    """What is due half an hour into the gap fires half an hour after it."""

    def next_fixed(self, entry, zone, after):
        instant = super().next_fixed(entry, zone, after)
        if instant is None or self.is_wanted(entry, zone.local(instant)):
            return instant
        before = zone.local(instant - 1) + 1
        return instant + self.first_wanted(entry, before, zone.local(instant)) - before


class FiresInTheLastPass(Oracle):
    def next_fixed(self, entry, zone, after):
        instant = super().next_fixed(entry, zone, after)
        if instant is None:
            return None
        later = [s for s in zone.stretches_from(instant)[1:2] if s.start + s.offset <= zone.local(instant) < s.end + s.offset]
        return zone.local(instant) - later[0].offset if later else instant


class StarHoursKeepTheClock(Oracle):
    def is_hourly(self, entry):
        return False


class AllHoursAreHourly(Oracle):
    def is_hourly(self, entry):
        return entry.is_hourly or len(entry.hour.values) == 24


class StarStepsAreNoStar(Oracle):
    def begins_with_star(self, field):
        return field.text == '*'


class BothDaysAlways(Oracle):
    def begins_with_star(self, field):
        return True


class SevenIsNoSunday(Oracle):
    sunday_too = None


class LeapYearsEndFebruaryEarly(Oracle):
    def length_of_month(self, date):
        return 28 if date.month == 2 else date.length


class NearestLeavesTheMonth(Oracle):
    def nearest_working(self, date, day):
        return day + {6: -1, 0: 1}.get(date.weekday_of(day), 0) if day <= date.length else None


class LastWorkingIsNoFriday(Oracle):
    def last_working(self, date):
        return date.length


class WeeksOfTheCalendar(Oracle):
    """The third Monday is that of the month's third week, which begins with a Sunday."""

    def obeys(self, date, kind, *numbers):
        if kind != 'such':
            return super().obeys(date, kind, *numbers)
        weekday, week = numbers
        return date.weekday == weekday and (date.day + date.weekday_of(1) - 1) // 7 + 1 == week


class TheFourthIsTheLast(Oracle):
    def obeys(self, date, kind, *numbers):
        if kind != 'last_such':
            return super().obeys(date, kind, *numbers)
        return date.weekday == numbers[0] and 21 < date.day <= 28


class EveryFourthYearIsALeapYear(Oracle):
    """The first of March 2100 is the 29th of February, too."""

    def is_date(self, entry, date):
        is_wrong = (date.year, date.month, date.day) == (2100, 3, 1)
        return super().is_date(entry, date) or is_wrong and super().is_date(entry, date._replace(day=29, month=2, length=29))


MUTANTS = Oracle.__subclasses__()


def name_of(mutant):
    return ''.join(' ' + letter.lower() if letter.isupper() else letter for letter in mutant.__name__).strip()
