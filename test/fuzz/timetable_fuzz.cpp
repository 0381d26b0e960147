#include "core/instants.hpp"

#include "fuzz/fuzz.hpp"
#include "unit/cron_model.hpp"
#include "unit/made_zone.hpp"

#include <algorithm>

namespace jobq::core {
namespace {

void hold_mistake(const Mistake& mistake) {
  auto is_printable = [](char character) { return character >= ' ' && character <= '~'; };
  EXPECT_FALSE(mistake.message.empty());
  EXPECT_FALSE(mistake.hint.empty());
  EXPECT_LE(mistake.message.size() + mistake.hint.size(), 400u);
  EXPECT_TRUE(std::ranges::all_of(mistake.message, is_printable));
  EXPECT_TRUE(std::ranges::all_of(mistake.hint, is_printable));
}

// The set is one of least to most, and has a member.
void hold_set(std::uint64_t set, int least, int most) {
  EXPECT_NE(set, 0u);
  EXPECT_EQ(set >> least << least, set);
  EXPECT_EQ(set >> most >> 1, 0u);
}

void hold_cron(const Cron& cron) {
  hold_set(cron.seconds, 0, 59);
  hold_set(cron.minutes, 0, 59);
  hold_set(cron.hours, 0, 23);
  hold_set(cron.months, 1, 12);
  hold_set(cron.days | 1u << 1, 1, 31);
  hold_set(cron.days_before_last | 1u, 0, 30);
  hold_set(cron.nearest_weekdays | 1u << 1, 1, 31);
  std::uint32_t weekdays = cron.weekdays | cron.last_weekdays;
  for (std::uint32_t nth : cron.nth_weekdays) weekdays |= nth;
  EXPECT_EQ(weekdays >> 7, 0u);
  EXPECT_EQ(cron.nth_weekdays[0], 0u);
  EXPECT_TRUE(can_match(cron));
}

// Changes up to days apart, at any time there is or nearer to ours.
Zone any_zone(Bytes& bytes) {
  Pick pick = pick_by(bytes);
  Seconds at = pick(0, 3) == 0 ? pick(-9'300'000'000'000, 9'300'000'000'000)
                               : pick(-kSecondsOfDay, kSecondsOfDay);
  Seconds offset = pick(-14 * 3600, 14 * 3600);
  Seconds first = offset;
  std::vector<Change> changes;
  for (std::int64_t count = pick(0, 6); count > 0; --count) {
    at += pick(1, 3 * kSecondsOfDay);
    offset =
        std::clamp(offset + pick(-kSecondsOfDay, kSecondsOfDay), -kSecondsOfDay, kSecondsOfDay);
    changes.push_back({.at = at, .offset = offset});
  }
  return made_zone(first, changes);
}

Rule any_rule(const Timetable& timetable, Bytes& bytes) {
  Rule rule = {.timetable = timetable, .zone = any_zone(bytes)};
  rule.phase = any<Microseconds>(bytes);
  if (any<bool>(bytes)) rule.starts_at = any<Microseconds>(bytes);
  if (any<bool>(bytes)) rule.ends_at = any<Microseconds>(bytes);
  return rule;
}

void hold_instant(const Rule& rule, Microseconds instant) {
  EXPECT_GE(instant, rule.starts_at.value_or(instant));
  EXPECT_LE(instant, rule.ends_at.value_or(instant));
  if (rule.timetable.kind == Timetable::Kind::interval) {
    EXPECT_TRUE((Wide{instant} - rule.phase) % rule.timetable.interval == 0);
    return;
  }
  EXPECT_EQ(instant % kSecond, 0);
  Seconds second = instant / kSecond;
  if (rule.timetable.cron.is_hourly) {
    EXPECT_TRUE(matches(rule.timetable.cron, second + rule.zone(second).offset));
  }
}

// What comes next after an instant comes next after all until then.
void hold_instants(const Rule& rule, Bytes& bytes) {
  Pick pick = pick_by(bytes);
  Microseconds instant = any<bool>(bytes) ? any<Microseconds>(bytes) : pick(-3 * kDay, 20 * kDay);
  for (int i = 0; i < 20; ++i) {
    std::optional<Microseconds> next = next_after(rule, instant);
    if (!next) break;
    EXPECT_NE(rule.timetable.kind, Timetable::Kind::reboot);
    EXPECT_GT(*next, instant);
    hold_instant(rule, *next);
    EXPECT_EQ(next_after(rule, pick(instant, *next - 1)), next);
    EXPECT_EQ(next_after(rule, *next - 1), next);
    instant = *next;
  }
}

} // namespace

void hold(Bytes& bytes) {
  std::string text = bytes.ConsumeRandomLengthString();
  auto read = read_timetable(text);
  if (const Mistake* mistake = std::get_if<Mistake>(&read)) return hold_mistake(*mistake);
  const Timetable& timetable = std::get<Timetable>(read);
  if (timetable.kind == Timetable::Kind::cron) hold_cron(timetable.cron);
  if (timetable.kind == Timetable::Kind::interval) {
    EXPECT_GE(timetable.interval, kSecond);
    EXPECT_LE(timetable.interval, 36'500 * kDay);
  }
  hold_instants(any_rule(timetable, bytes), bytes);
}

} // namespace jobq::core
