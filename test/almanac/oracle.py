"""When a schedule is due by the words of README's rules, plainly. Instants and local times are whole seconds since 1970.

A local time is walked to: from day to day until one is right, in it from hour to hour, from minute to minute, from second to second. `walk` is
plainer still: from instant to instant.
"""
from almanac.days import DATES, date_of
from almanac.zones import DAY


class Oracle:
    """Each rule is a method, so that test/instants --self-test can break one of them alone."""

    # Dates

    def length_of_month(self, date):
        return date.length

    def is_working(self, date, day):
        return 1 <= day <= date.length and date.weekday_of(day) not in (0, 6)

    def nearest_working(self, date, day):
        if day <= date.length:
            return min((d for d in range(1, date.length + 1) if self.is_working(date, d)), key=lambda d: abs(d - day))

    def last_working(self, date):
        return max(d for d in range(date.length - 3, date.length + 1) if self.is_working(date, d))

    def obeys(self, date, kind, *numbers):
        match kind, *numbers:
            case 'before_last', days: return date.day == self.length_of_month(date) - days
            case 'last_working', : return date.day == self.last_working(date)
            case 'nearest', day: return date.day == self.nearest_working(date, day)
            case 'such', weekday, week: return date.weekday == weekday and date.day in range(7 * week - 6, 7 * week + 1)
            case 'last_such', weekday: return date.weekday == weekday and date.day + 7 > date.length

    def is_day(self, field, date):
        return date.day in field.values or any(self.obeys(date, *rule) for rule in field.rules)

    def is_weekday(self, field, date):
        return (date.weekday in field.values or date.weekday == 0 and self.sunday_too in field.values
                or any(self.obeys(date, *rule) for rule in field.rules))

    sunday_too = 7

    def begins_with_star(self, field):
        return field.begins_with_star

    def is_date(self, entry, date):
        if date.month not in entry.month.values:
            return False
        if self.begins_with_star(entry.day) or self.begins_with_star(entry.weekday):
            return self.is_day(entry.day, date) and self.is_weekday(entry.weekday, date)
        return self.is_day(entry.day, date) or self.is_weekday(entry.weekday, date)

    def can_be(self, entry):
        """Whether any date is right. In 28 years there is a year of each kind."""
        return any(self.is_date(entry, date) for date in DATES[:29 * 366])

    # Local times

    def is_wanted(self, entry, local):
        clock = local % DAY
        return (clock // 3600 in entry.hour.values and clock // 60 % 60 in entry.minute.values and clock % 60 in entry.second.values
                and self.is_date(entry, date_of(local // DAY)))

    def first_in_day(self, entry, clock):
        """The first wanted time of day that is not before the clock."""
        hour, minute, second = clock // 3600, clock // 60 % 60, clock % 60
        for h in range(hour, 24):
            if h in entry.hour.values:
                for m in range(minute if h == hour else 0, 60):
                    if m in entry.minute.values:
                        for s in range(second if (h, m) == (hour, minute) else 0, 60):
                            if s in entry.second.values:
                                return h * 3600 + m * 60 + s

    def first_wanted(self, entry, local, end):
        """The first wanted local time that is not before `local` and before `end`, or None."""
        day = local // DAY
        while local < end:
            if self.is_date(entry, date_of(day)):
                clock = self.first_in_day(entry, local % DAY)
                if clock is not None:
                    return day * DAY + clock if day * DAY + clock < end else None
            day += 1
            local = day * DAY

    # Instants

    def is_hourly(self, entry):
        return entry.is_hourly

    def next_hourly(self, entry, zone, after):
        """Each instant whose local time is wanted."""
        for start, end, offset in zone.stretches_from(after + 1):
            local = self.first_wanted(entry, max(start, after + 1) + offset, end + offset)
            if local is not None:
                return local - offset

    def next_fixed(self, entry, zone, after):
        """The first instant at which a wanted local time is reached or has been passed over, that had not been before."""
        seen = zone.highest_local(after)
        for start, end, offset in zone.stretches_from(after + 1):
            local = self.first_wanted(entry, seen + 1, end + offset)
            if local is not None:
                return max(start, local - offset)
            seen = max(seen, end - 1 + offset)

    def next(self, entry, zone, after):
        """The next instant, None if it is not before the horizon."""
        return (self.next_hourly if self.is_hourly(entry) else self.next_fixed)(entry, zone, after)

    def walk(self, entry, zone, after, step, steps):
        """The next instant, None if it takes more steps than these."""
        seen = zone.highest_local(after)
        first = after - after % step + step
        for instant in range(first, first + step * steps, step):
            local = zone.local(instant)
            if entry.is_hourly:
                is_due = self.is_wanted(entry, local)
            else:
                passed = range(seen - seen % step + step, local + 1, step)
                is_due = any(self.is_wanted(entry, time) for time in passed)
            if is_due:
                return instant
            seen = max(seen, local)
