#include "core/interval_text.hpp"

#include <algorithm>
#include <initializer_list>

#include "core/mistake.hpp"
#include "core/words.hpp"

#include "core/pure.hpp"

namespace jobq::core {

namespace {

constexpr Microseconds kMinute = 60 * kSecond;
constexpr Microseconds kShortest = kSecond;
constexpr Microseconds kLongest = 36'500 * kDay;

constexpr const char* kUnits = "Units are seconds, minutes, hours, days and weeks.";

// whole + millionths / 1,000,000
struct Number {
  std::int64_t whole = 0;
  std::int64_t millionths = 0;
};

Mistake too_short() {
  return {.message = "an interval is at least 1 second",
          .hint = "Write an interval such as '30 seconds'."};
}

Mistake too_long() {
  return {.message = "an interval is at most 36500 days",
          .hint = "Write a shorter interval, or a cron expression."};
}

Mistake invalid_number(std::string_view word) {
  return {.message = "invalid number" + quoted(word) + " in an interval",
          .hint = "Write numbers with at most six decimals, each with its unit, as in "
                  "'1 hour 30 minutes'."};
}

Mistake invalid_unit(std::string_view word) {
  return {.message = "invalid unit" + quoted(word) + " in an interval", .hint = kUnits};
}

Mistake no_unit(std::string_view word) {
  return {.message = "number" + quoted(word) + " without a unit in an interval", .hint = kUnits};
}

Mistake invalid_time(std::string_view word) {
  return {.message = "invalid time" + quoted(word) + " in an interval",
          .hint = "Write hours, minutes and seconds, as in '02:30:00'; nothing may follow."};
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return is_word(text, word); });
}

Microseconds unit_named(std::string_view name) {
  if (is_one_of(name, {"s", "sec", "secs", "second", "seconds"})) return kSecond;
  if (is_one_of(name, {"min", "mins", "minute", "minutes"})) return kMinute;
  if (is_one_of(name, {"h", "hr", "hrs", "hour", "hours"})) return kHour;
  if (is_one_of(name, {"d", "day", "days"})) return kDay;
  if (is_one_of(name, {"w", "week", "weeks"})) return 7 * kDay;
  if (is_word(name, "m"))
    throw Mistake{.message = "unit" + quoted(name) + " may mean minutes or months",
                  .hint = "Write minutes as 'min'; for months write a cron expression such as "
                          "'0 0 1 * *'."};
  if (is_one_of(name, {"mon", "mons", "month", "months", "y", "yr", "yrs", "year", "years"}))
    throw Mistake{.message = "months and years have no fixed length",
                  .hint = "Write a cron expression such as '0 0 1 * *'."};
  throw invalid_unit(name);
}

// The word that begins there, for a message: not to its end if it is long, lest a long text be read
// again at each of its parts.
std::string_view word_at(std::string_view rest) {
  rest = rest.substr(0, 100);
  return take_word(rest);
}

// Of more digits than any interval needs, the number stays too large.
std::int64_t number_of(std::string_view digits) {
  std::int64_t number = 0;
  for (char digit : digits) number = std::min(number * 10 + (digit - '0'), kLongest);
  return number;
}

// The digits after a point; `word` is what they are part of.
std::int64_t take_millionths(std::string_view& rest, std::string_view word) {
  std::string_view digits = take_while(rest, is_digit);
  if (digits.empty() || digits.size() > 6) throw invalid_number(word);
  std::int64_t millionths = number_of(digits);
  for (std::size_t size = digits.size(); size < 6; ++size) millionths *= 10;
  return millionths;
}

Number take_number(std::string_view& rest) {
  if (rest.starts_with('-')) throw too_short();
  std::string_view word = word_at(rest);
  std::string_view digits = take_while(rest, is_digit);
  if (digits.empty()) throw invalid_number(word);
  Number number = {.whole = number_of(digits)};
  if (take(rest, '.')) number.millionths = take_millionths(rest, word);
  return number;
}

Microseconds length_of(const Number& number, Microseconds unit) {
  if (number.whole > kLongest / unit) throw too_long();
  return number.whole * unit + number.millionths * (unit / kSecond);
}

// The minutes or seconds of a time: two digits.
Microseconds take_sixtieths(std::string_view& rest, std::string_view time, Microseconds unit) {
  std::string_view digits = take_while(rest, is_digit);
  if (digits.size() != 2 || number_of(digits) > 59) throw invalid_time(time);
  return number_of(digits) * unit;
}

// The rest of a time after its hours, colon first.
Microseconds take_time(std::string_view& rest, std::string_view time) {
  take(rest, ':');
  Microseconds length = take_sixtieths(rest, time, kMinute);
  if (take(rest, ':')) {
    length += take_sixtieths(rest, time, kSecond);
    if (take(rest, '.')) length += take_millionths(rest, time);
  }
  if (!rest.empty()) throw invalid_time(time);
  return length;
}

Microseconds take_part(std::string_view& rest) {
  std::string_view begin = word_at(rest);
  Number number = take_number(rest);
  if (rest.starts_with(':')) {
    if (number.millionths != 0) throw invalid_time(begin);
    return length_of(number, kHour) + take_time(rest, begin);
  }
  take_while(rest, is_blank);
  std::string_view unit = take_while(rest, is_letter);
  if (unit.empty()) throw no_unit(begin);
  return length_of(number, unit_named(unit));
}

} // namespace

bool is_interval(std::string_view text) {
  if (text.find('*') != std::string_view::npos) return false;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  auto is_part_of_number = [](char character) { return is_digit(character) || character == '.'; };
  if (take_while(text, is_part_of_number).empty()) return false;
  take_while(text, is_blank);
  return !text.empty() && (is_letter(text.front()) || text.front() == ':');
}

Microseconds read_interval(std::string_view text) {
  Microseconds length = 0;
  for (take_while(text, is_blank); !text.empty(); take_while(text, is_blank)) {
    length += take_part(text);
    if (length > kLongest) throw too_long();
  }
  if (length < kShortest) throw too_short();
  return length;
}

} // namespace jobq::core
