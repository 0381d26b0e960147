#include "core/timetable.hpp"
#include "unit/pick.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

using Kind = Timetable::Kind;

constexpr std::size_t kMillion = 1'000'000;
constexpr std::size_t kLongestMessage = 150;

Timetable read(std::string_view text) {
  auto read = read_timetable(text);
  const Mistake* mistake = std::get_if<Mistake>(&read);
  EXPECT_FALSE(mistake) << text << ": " << mistake->message;
  return mistake ? Timetable{} : std::get<Timetable>(read);
}

Cron cron(std::string_view text) {
  EXPECT_EQ(read(text).kind, Kind::cron) << text;
  return read(text).cron;
}

std::optional<Mistake> mistake_in(std::string_view text) {
  auto read = read_timetable(text);
  const Mistake* mistake = std::get_if<Mistake>(&read);
  return mistake ? std::optional(*mistake) : std::nullopt;
}

bool is_same(const Cron& one, const Cron& other) {
  return one.seconds == other.seconds && one.minutes == other.minutes && one.hours == other.hours &&
         one.months == other.months && one.days == other.days &&
         one.days_before_last == other.days_before_last &&
         one.nearest_weekdays == other.nearest_weekdays &&
         one.is_last_weekday == other.is_last_weekday && one.weekdays == other.weekdays &&
         one.nth_weekdays == other.nth_weekdays && one.last_weekdays == other.last_weekdays &&
         one.is_day_restricted_by_both == other.is_day_restricted_by_both &&
         one.is_hourly == other.is_hourly;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// A mistake that says so and what to do, in words that suit a log of any encoding.
void expect_mistake(std::string_view text, std::string_view message, std::string_view hint = "") {
  std::string_view shown = text.substr(0, 60);
  std::optional<Mistake> mistake = mistake_in(text);
  ASSERT_TRUE(mistake) << shown;
  EXPECT_NE(mistake->message.find(message), std::string::npos) << shown << ": " << mistake->message;
  EXPECT_NE(mistake->hint.find(hint), std::string::npos) << shown << ": " << mistake->hint;
  EXPECT_TRUE(mistake->hint.ends_with('.')) << mistake->hint;
  EXPECT_FALSE(mistake->message.ends_with('.')) << mistake->message;
  EXPECT_TRUE(is_printable(mistake->message)) << shown;
  EXPECT_TRUE(is_printable(mistake->hint)) << shown;
  EXPECT_LE(mistake->message.size(), kLongestMessage);
}

constexpr std::uint64_t bits(std::initializer_list<int> members) {
  std::uint64_t set = 0;
  for (int member : members) set |= std::uint64_t{1} << member;
  return set;
}

TEST(Timetable, AFieldIsAListOfNumbersRangesAndSteps) {
  EXPECT_EQ(cron("1,5-7,40-59/10 * * * *").minutes, bits({1, 5, 6, 7, 40, 50}));
  EXPECT_EQ(cron("*/20 * * * *").minutes, bits({0, 20, 40}));
  EXPECT_EQ(cron("*/60 * * * *").minutes, bits({0}));
  EXPECT_EQ(cron("007-0000000000000000000008 * * * *").minutes, bits({7, 8}));
  EXPECT_EQ(cron("* 9-17/4 * * *").hours, bits({9, 13, 17}));
  EXPECT_EQ(cron("* * */10 * *").days, bits({1, 11, 21, 31}));
  EXPECT_EQ(cron("* * * */5 *").months, bits({1, 6, 11}));
  EXPECT_EQ(cron("* * * * */3").weekdays, bits({0, 3, 6}));
  EXPECT_EQ(cron("* * * * */7").weekdays, bits({0}));
  EXPECT_EQ(cron("3-3 * * * *").minutes, bits({3}));
  EXPECT_EQ(cron("*,3 * * * *").minutes, cron("* * * * *").minutes);
}

TEST(Timetable, FieldsStandApartByAnyBlanks) {
  EXPECT_TRUE(is_same(cron(" \t1\n2 \r\n 3\v4\f5 \n"), cron("1 2 3 4 5")));
}

TEST(Timetable, SixFieldsBeginWithSeconds) {
  EXPECT_EQ(cron("*/15 1 2 3 4 5").seconds, bits({0, 15, 30, 45}));
  EXPECT_EQ(cron("*/15 1 2 3 4 5").minutes, bits({1}));
  EXPECT_EQ(cron("1 2 3 4 5").seconds, bits({0}));
}

TEST(Timetable, MonthsAndDaysHaveNamesInAnyCase) {
  EXPECT_TRUE(is_same(cron("0 0 1 JAN,feb,Nov-dec Mon-fRi/2"), cron("0 0 1 1,2,11-12 1-5/2")));
  EXPECT_EQ(cron("0 0 * mar-oct/3 *").months, bits({3, 6, 9}));
  EXPECT_EQ(cron("0 0 * * sun,sat").weekdays, bits({0, 6}));
}

TEST(Timetable, SundayIsTheFirstDayAndTheLast) {
  EXPECT_EQ(cron("0 0 * * 0").weekdays, cron("0 0 * * 7").weekdays);
  EXPECT_EQ(cron("0 0 * * fri-sun").weekdays, bits({0, 5, 6}));
  EXPECT_EQ(cron("0 0 * * fri-SUN/2").weekdays, bits({0, 5}));
  EXPECT_EQ(cron("0 0 * * 5-7").weekdays, bits({0, 5, 6}));
  EXPECT_EQ(cron("0 0 * * sun-tue").weekdays, bits({0, 1, 2}));
  EXPECT_EQ(cron("0 0 * * sun-sun").weekdays, bits({0}));
  EXPECT_EQ(cron("0 0 * * 0-7").weekdays, cron("0 0 * * *").weekdays);
}

TEST(Timetable, DaysThatDependOnTheMonth) {
  const Cron days = cron("0 0 L,$,l-2,L-30,LW,15W,1w,9 * *");
  EXPECT_EQ(days.days_before_last, bits({0, 2, 30}));
  EXPECT_TRUE(days.is_last_weekday);
  EXPECT_EQ(days.nearest_weekdays, bits({1, 15}));
  EXPECT_EQ(days.days, bits({9}));
  const Cron weekdays = cron("0 0 * * mon#1,7#5,FRIL,2l,3");
  EXPECT_EQ(weekdays.nth_weekdays[1], bits({1}));
  EXPECT_EQ(weekdays.nth_weekdays[5], bits({0}));
  EXPECT_EQ(weekdays.last_weekdays, bits({2, 5}));
  EXPECT_EQ(weekdays.weekdays, bits({3}));
}

TEST(Timetable, AStarInFrontDecidesHowDaysAndHoursAreMeant) {
  EXPECT_FALSE(cron("0 0 1 * 1").is_day_restricted_by_both);
  EXPECT_TRUE(cron("0 0 1 * *").is_day_restricted_by_both);
  EXPECT_TRUE(cron("0 0 */2 * 1").is_day_restricted_by_both);
  EXPECT_TRUE(cron("0 0 1 * *,1").is_day_restricted_by_both);
  EXPECT_FALSE(cron("0 0 1-31 * 0-6").is_day_restricted_by_both);
  EXPECT_FALSE(cron("0 0 1,* * 2").is_day_restricted_by_both);
  EXPECT_TRUE(cron("0 * 1 * 1").is_hourly);
  EXPECT_TRUE(cron("0 */2 1 * 1").is_hourly);
  EXPECT_FALSE(cron("0 0-23 1 * 1").is_hourly);
  EXPECT_FALSE(cron("0 *,3 1 * 1").is_hourly);
}

TEST(Timetable, WordsStandForExpressions) {
  EXPECT_TRUE(is_same(cron("@yearly"), cron("0 0 1 1 *")));
  EXPECT_TRUE(is_same(cron("@annually"), cron("0 0 1 1 *")));
  EXPECT_TRUE(is_same(cron("@monthly"), cron("0 0 1 * *")));
  EXPECT_TRUE(is_same(cron("@weekly"), cron("0 0 * * 0")));
  EXPECT_TRUE(is_same(cron("@daily"), cron("0 0 * * *")));
  EXPECT_TRUE(is_same(cron(" @MidNight\n"), cron("0 0 * * *")));
  EXPECT_TRUE(is_same(cron("@hourly"), cron("0 * * * *")));
  EXPECT_EQ(read("@Reboot").kind, Kind::reboot);
}

TEST(Timetable, IntervalsAreNumbersWithUnits) {
  constexpr std::pair<std::string_view, Microseconds> kIntervals[] = {
      {"1 second", kSecond},
      {"30 seconds", 30 * kSecond},
      {"30s 5 SEC", 35 * kSecond},
      {"5 minutes", 300 * kSecond},
      {"5 minute", 300 * kSecond},
      {"5min", 300 * kSecond},
      {"2 mins 1 s", 121 * kSecond},
      {"1.5 hours", 5400 * kSecond},
      {"1h30min", 5400 * kSecond},
      {"2\t hr\n3 hrs", 5 * kHour},
      {"1 d", kDay},
      {"3 days 0.000001 s", 3 * kDay + 1},
      {"1 week 2 w", 21 * kDay},
      {"0.5 w", 84 * kHour},
      {"36500 days", 36'500 * kDay},
      {"02:30:00", 2 * kHour + kHour / 2},
      {"0:00:01", kSecond},
      {"00:00:01.5", 3 * kSecond / 2},
      {"100:59", 100 * kHour + 59 * 60 * kSecond},
      {"1 day 02:00:00.25", kDay + 2 * kHour + kSecond / 4},
      {"2 days", 2 * kDay},
      {"0000000000000000000000000000000000001 day", kDay},
  };
  for (auto [text, length] : kIntervals) {
    EXPECT_EQ(read(text).kind, Kind::interval) << text;
    EXPECT_EQ(read(text).interval, length) << text;
  }
}

TEST(Timetable, IntervalsThatAreNone) {
  for (std::string_view text : {"0 s", "0.999999 s", "-5 minutes", "1 day -2 hours", "-02:00:00",
                                "0 days 00:00:00", "-1 days +02:00:00"})
    expect_mistake(text, "at least 1 second");
  for (std::string_view text :
       {"36501 days", "36500 days 0.000001 s", "9223372036854775807 weeks",
        "99999999999999999999999999 s", "9999999999:00:00", "5214 w 2 d 24 h 1 s"})
    expect_mistake(text, "at most 36500 days");
  for (std::string_view text : {"1 month", "3 mons", "2 years 1 day", "1 y"})
    expect_mistake(text, "no fixed length", "'0 0 1 * *'");
  expect_mistake("5 m", "minutes or months", "min");
  expect_mistake("5 parsecs", "invalid unit \"parsecs\"", "seconds, minutes");
  expect_mistake("500 ms", "invalid unit \"ms\"");
  expect_mistake("5 minutes and 1 second", "invalid number \"and\"");
  expect_mistake("5 minutes, 1 second", "invalid number \",\"");
  expect_mistake("5 days 3", "number \"3\" without a unit");
  expect_mistake("1.1234567 s", "invalid number \"1.1234567\"");
  expect_mistake("1. s", "invalid number \"1.\"");
  expect_mistake("1.2.3 s", "without a unit");
  for (std::string_view text : {"1:2", "01:60", "01:00:60", "01:00:00:00", "01:00 1 day", "1.5:00",
                                "01:", "01:00:", "01:00s"})
    expect_mistake(text, "invalid time");
}

TEST(Timetable, FieldsOutOfRange) {
  expect_mistake("60 * * * *", "minute \"60\" is out of range", "0 to 59");
  expect_mistake("60 0 * * * *", "second \"60\" is out of range", "0 to 59");
  expect_mistake("0 24 * * *", "hour \"24\" is out of range", "0 to 23");
  expect_mistake("0 0 0 * *", "day of month \"0\" is out of range", "1 to 31");
  expect_mistake("0 0 32 * *", "day of month \"32\" is out of range");
  expect_mistake("0 0 32W * *", "day of month \"32W\" is out of range");
  expect_mistake("0 0 L-0 * *", "day of month \"L-0\" is out of range");
  expect_mistake("0 0 L-31 * *", "day of month \"L-31\" is out of range");
  expect_mistake("0 0 * 0 *", "month \"0\" is out of range", "1 to 12");
  expect_mistake("0 0 * 13 *", "month \"13\" is out of range");
  expect_mistake("0 0 * * 8", "day of week \"8\" is out of range", "0 to 7");
  expect_mistake("0 0 * * 8#1", "day of week \"8#1\" is out of range");
  expect_mistake("0 0 * * 1#0", "day of week \"1#0\" is out of range");
  expect_mistake("0 0 * * 1#6", "day of week \"1#6\" is out of range");
  expect_mistake("1-60 * * * *", "minute \"1-60\" is out of range");
}

TEST(Timetable, FieldsThatCannotBeRead) {
  for (std::string_view field :
       {"x",  "1-", "-1", "1--2", "1-2-3", "*/",  "*/x", "1/2/3", "**", "*5",   "1.5",
        "+1", "L",  "1W", "1#2",  "jan",   "0x1", "*-5", "1-*",   "/5", "*/-1", "5L"})
    expect_mistake(std::string(field) + " * * * *", "invalid minute \"" + std::string(field) + "\"",
                   "0 to 59");
  for (std::string_view field : {"LW-1", "L/2", "1-LW", "1-5W", "W", "WL", "L-", "L-x", "$-1", "LL",
                                 "L-1W", "1L", "1#2", "mon", "15W/2", "L-2/2"})
    expect_mistake("0 0 " + std::string(field) + " * *",
                   "invalid day of month \"" + std::string(field) + "\"", "LW");
  for (std::string_view field : {"L", "monday", "mon-fri#2", "1#", "#1", "1#1#1", "1#1-2", "1LL",
                                 "1L/2", "mo", "1-5L", "W", "sunx", "*L", "*#1"})
    expect_mistake("0 0 * * " + std::string(field),
                   "invalid day of week \"" + std::string(field) + "\"", "sun to sat");
  for (std::string_view field : {"january", "ja", "jan-", "janfeb", "feb-x", "mon"})
    expect_mistake("0 0 * " + std::string(field) + " *", "invalid month", "jan to dec");
}

TEST(Timetable, WhatIsMeantIsHinted) {
  expect_mistake("? * * * *", "invalid minute \"?\"", "Write *");
  expect_mistake("0 0 ? * 1", "invalid day of month \"?\"", "Write *");
  expect_mistake("*/90 * * * *", "step of minute \"*/90\"", "'90 minutes'");
  expect_mistake("0 */36 * * *", "step of hour \"*/36\"", "'36 hours'");
  expect_mistake("0 0 */45 * *", "step of day of month", "'45 days'");
  expect_mistake("0 0 * */13 *", "step of month \"*/13\"", "1 to 12.");
  expect_mistake("0 0 * * */8", "step of day of week \"*/8\"", "1 to 7.");
  expect_mistake("1-5/61 * * * *", "step of minute", "'61 minutes'");
  expect_mistake("*/99999999999999999999 * * * *", "step of minute", "1 to 60.");
  expect_mistake("5/15 * * * *", "step without a range", "Write 5-59/15.");
  expect_mistake("0 0 * * sat/2", "step without a range", "Write 6-6/2.");
  expect_mistake("0 0 * * 7/2", "step without a range", "Write 7-7/2.");
  expect_mistake("0 22-2 * * *", "ends before it begins", "22-23,0-2.");
  expect_mistake("0 23-0 * * *", "ends before it begins", "23,0.");
  expect_mistake("0 0 * nov-feb *", "ends before it begins", "11-12,1-2.");
  expect_mistake("0 0 * * fri-mon", "ends before it begins", "5-6,0-1.");
  expect_mistake("0 0 * * 5-0", "ends before it begins", "5-6,0.");
  expect_mistake("* * * *", "not 4", "'5 minutes'");
  expect_mistake("* * * * * * *", "not 7");
  expect_mistake("5", "not 1", "'5 minutes'");
  expect_mistake("every 10 seconds", "invalid schedule", "Write '10 seconds'.");
  expect_mistake("@every 5m", "minutes or months");
  expect_mistake("@every 1h30min", "invalid schedule", "Write '1h30min'.");
  expect_mistake("@every", "invalid schedule", "@daily");
  expect_mistake("every minute", "not 2");
  expect_mistake("@dayly", "invalid schedule \"@dayly\"", "@daily");
}

TEST(Timetable, WhatUsedToCrashOthersIsAMistake) { // case 156
  for (std::string_view text : {"", " ", "\t\n\r\v\f  "}) expect_mistake(text, "empty");
  for (std::string_view text : {"1, * * * *", ",1 * * * *", "1,,2 * * * *", ", * * * *"})
    expect_mistake(text, "empty item");
  expect_mistake("*/0 * * * *", "step of minute \"*/0\" is out of range");
  expect_mistake("1- * * * *", "invalid minute \"1-\"");
  expect_mistake("99999999999999999999 * * * *", "is out of range");
  expect_mistake("* * * * 18446744073709551617", "is out of range");
  expect_mistake("-1", "not 1");
  expect_mistake("-1 * * * *", "invalid minute \"-1\"");
  expect_mistake("@", "invalid schedule \"@\"");
  expect_mistake("@reboot x", "invalid schedule \"@reboot x\"", "alone");
  expect_mistake("@daily 5", "invalid schedule", "alone");
  expect_mistake(std::string_view("* * * * *\0", 10), "invalid day of week");
}

TEST(Timetable, LongTextsAreReadThroughAndQuotedInPart) { // case 156
  for (std::size_t size :
       {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{1000}, kMillion}) {
    expect_mistake(std::string(size, ' '), "empty");
    for (char character : {'1', ',', '*', '-', '/', '@', 'L', 'x', '?', '.', ':', '\x80'})
      expect_mistake(std::string(size, character), "");
    for (char character : {'9', ',', '*', '-', '/', 'L', '#', '\xc3'})
      expect_mistake(std::string(size + 3, character) + " * * * *", "minute");
  }
  std::string list = "1";
  std::string fields = "*";
  std::string seconds = "0 s";
  std::string close = "1s";
  while (list.size() < kMillion) {
    list += ",1";
    fields += " *";
    seconds += " 0s";
    close += "0s";
  }
  EXPECT_EQ(cron(list + " * * * *").minutes, bits({1}));
  expect_mistake(list + ",x * * * *", "invalid minute \"x\"");
  expect_mistake(fields, "not 500001");
  expect_mistake(seconds, "at least 1 second");
  EXPECT_EQ(read(seconds + " 1 s").interval, kSecond);
  EXPECT_EQ(read(close).interval, kSecond);
  expect_mistake("5 " + std::string(kMillion, 'x'), "invalid unit \"xxx");
  expect_mistake("every 5 seconds" + std::string(kMillion, ' ') + "1 s", "invalid schedule",
                 "Write '5 seconds  ");
}

TEST(Timetable, WhatCannotBeShownIsNotQuoted) {
  EXPECT_EQ(mistake_in("\xc3\xa4 * * * *")->message, "invalid minute");
  EXPECT_EQ(mistake_in("6\x01 * * * *")->message, "invalid minute");
  EXPECT_EQ(mistake_in("@\xff")->message, "invalid schedule");
  EXPECT_EQ(mistake_in("5 \xc2\xb5s")->message, mistake_in("5 \xc2")->message);
  expect_mistake(std::string(40, '7') + "\xc3\xa4 * * * *", std::string(40, '7') + "...\"");
}

TEST(Timetable, ImpossibleDatesAreMistakes) { // case 14
  for (std::string_view text :
       {"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 feb *", "0 0 30,31 2 *", "0 0 L-29 2 *",
        "0 0 30W 2 *", "0 0 31W 4 *", "0 0 */31 4 mon#5"})
    expect_mistake(text, "no date matches");
  for (std::string_view text : {"0 0 29 2 *", "0 0 29 2 */6", "0 0 * 2 1#5", "0 0 30 2 1",
                                "0 0 31 1,2 *", "0 0 L-28 2 *", "0 0 29W 2 *"})
    EXPECT_EQ(read(text).kind, Kind::cron) << text;
}

// Texts put together from what the language is made of.
TEST(Timetable, AnyTextIsATimetableOrAMistake) {
  constexpr std::string_view kParts[] = {"*",   "/", "-", ",", " ",     " ",    " ",   "1",   "5",
                                         "59",  "L", "W", "#", "$",     "?",    "@",   "sun", "jan",
                                         "min", "s", ":", ".", "every", "\xc3", "hour"};
  Pick pick = pick_at_random(156);
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (std::int64_t parts = pick(0, 14); parts > 0; --parts)
      text += kParts[pick(0, std::size(kParts) - 1)];
    if (mistake_in(text)) expect_mistake(text, "");
    if (HasFailure()) return;
  }
}

} // namespace
} // namespace jobq::core
