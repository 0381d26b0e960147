#include "core/cron_field.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/mistake.hpp"
#include "core/words.hpp"

#include "core/pure.hpp"

namespace jobq::core {

namespace {

struct Shape {
  std::string name;
  int least = 0;
  int most = 0;           // that may be written
  int last = 0;           // of *
  std::string_view names; // of the least one and those after it, three letters each
  std::string unit;       // of an interval that does what a longer step would
  std::string hint;
};

constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
constexpr std::string_view kWeekdays = "sunmontuewedthufrisat";
constexpr const char* kDaysHint =
    "Days of the month are 1 to 31, L, L-1 to L-30, LW and 1W to 31W.";
constexpr const char* kMonthsHint = "Months are 1 to 12, or jan to dec.";
constexpr const char* kWeekdaysHint =
    "Days of the week are 0 to 7 (0 and 7 are Sunday), or sun to sat; mon#1 is the first Monday of "
    "the month, monL the last one.";

Shape shape_of(Field field) {
  switch (field) {
  case Field::second:
    return {"second", 0, 59, 59, "", "seconds", "Seconds are 0 to 59."};
  case Field::minute:
    return {"minute", 0, 59, 59, "", "minutes", "Minutes are 0 to 59."};
  case Field::hour:
    return {"hour", 0, 23, 23, "", "hours", "Hours are 0 to 23."};
  case Field::day:
    return {"day of month", 1, 31, 31, "", "days", kDaysHint};
  case Field::month:
    return {"month", 1, 12, 12, kMonths, "", kMonthsHint};
  case Field::weekday:
    break;
  }
  return {"day of week", 0, 7, 6, kWeekdays, "", kWeekdaysHint};
}

constexpr int kTooLarge = 10'000; // for any number here

Mistake unreadable(const Shape& shape, std::string_view item) {
  return {.message = "invalid " + shape.name + quoted(item), .hint = shape.hint};
}

Mistake out_of_range(const Shape& shape, std::string_view item) {
  return {.message = shape.name + quoted(item) + " is out of range", .hint = shape.hint};
}

std::string range(int first, int last) {
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

Mistake backward(const Shape& shape, std::string_view item, int first, int last) {
  return {.message = shape.name + quoted(item) + " ends before it begins",
          .hint = "Write two ranges: " + range(first, std::max(first, shape.last)) + "," +
                  range(shape.least, last) + "."};
}

Mistake bad_step(const Shape& shape, std::string_view item, int step) {
  std::string hint = "Steps are 1 to " + std::to_string(shape.last - shape.least + 1);
  if (step > 0 && step < kTooLarge && !shape.unit.empty())
    hint += "; for longer ones write an interval such as '" + std::to_string(step) + " " +
            shape.unit + "'";
  return {.message = "the step of " + shape.name + quoted(item) + " is out of range",
          .hint = hint + "."};
}

Mistake step_without_range(const Shape& shape, std::string_view item, int first, int step) {
  return {.message = shape.name + quoted(item) + " has a step without a range",
          .hint = "Write " + std::to_string(first) + "-" +
                  std::to_string(std::max(first, shape.last)) + "/" + std::to_string(step) + "."};
}

std::optional<int> take_number(std::string_view& rest) {
  std::string_view digits = take_while(rest, is_digit);
  if (digits.empty()) return std::nullopt;
  int number = 0;
  for (char digit : digits) number = std::min(number * 10 + (digit - '0'), kTooLarge);
  return number;
}

std::optional<int> take_name(const Shape& shape, std::string_view& rest) {
  for (std::size_t at = 0; at < shape.names.size(); at += 3) {
    if (!is_word(rest.substr(0, 3), shape.names.substr(at, 3))) continue;
    rest.remove_prefix(3);
    return shape.least + static_cast<int>(at / 3);
  }
  return std::nullopt;
}

// One item of a field's list.
class Item {
 public:
  Item(const Shape& shape, std::string_view text) : shape_(shape), text_(text), rest_(text) {}

  std::uint64_t read_set();
  // Whether the item is one of those that are no numbers. They know no ranges and no steps.
  bool read_day(Cron& cron);
  bool read_weekday(Cron& cron);

 private:
  bool is(std::string_view word) const { return is_word(text_, word); }
  int take_value();
  int take_end(int first);
  int take_step();
  int check(std::optional<int> number, int least, int most) const;

  const Shape& shape_;
  std::string_view text_;
  std::string_view rest_; // still to be read
};

int Item::check(std::optional<int> number, int least, int most) const {
  if (!number) throw unreadable(shape_, text_);
  if (*number < least || *number > most) throw out_of_range(shape_, text_);
  return *number;
}

int Item::take_value() {
  std::optional<int> name = take_name(shape_, rest_);
  return check(name ? name : take_number(rest_), shape_.least, shape_.most);
}

// By its name Sunday is the week's last day too: fri-sun.
int Item::take_end(int first) {
  bool is_sunday = is_word(rest_, "sun") || is_word(rest_.substr(0, 4), "sun/");
  int last = take_value();
  if (is_sunday && first > last) last = shape_.most;
  if (first > last) throw backward(shape_, text_, first, last);
  return last;
}

int Item::take_step() {
  std::optional<int> step = take_number(rest_);
  if (!step) throw unreadable(shape_, text_);
  if (*step < 1 || *step > shape_.last - shape_.least + 1) throw bad_step(shape_, text_, *step);
  return *step;
}

std::uint64_t Item::read_set() {
  if (text_ == "?")
    throw Mistake{.message = "invalid " + shape_.name + quoted(text_), .hint = "Write * instead."};
  bool is_range = take(rest_, '*');
  int first = is_range ? shape_.least : take_value();
  int last = is_range ? shape_.last : first;
  if (!is_range && take(rest_, '-')) {
    is_range = true;
    last = take_end(first);
  }
  bool has_step = take(rest_, '/');
  int step = has_step ? take_step() : 1;
  if (!rest_.empty()) throw unreadable(shape_, text_);
  if (has_step && !is_range) throw step_without_range(shape_, text_, first, step);
  std::uint64_t set = 0;
  for (int member = first; member <= last; member += step) set |= std::uint64_t{1} << member;
  return set;
}

bool Item::read_day(Cron& cron) {
  if (is("l") || is("$")) {
    cron.days_before_last |= 1;
  } else if (is("lw")) {
    cron.is_last_weekday = true;
  } else if (is_word(text_.substr(0, 2), "l-")) {
    rest_.remove_prefix(2);
    int days = check(take_number(rest_), 1, 30);
    if (!rest_.empty()) throw unreadable(shape_, text_);
    cron.days_before_last |= 1u << days;
  } else {
    std::string_view rest = text_;
    std::optional<int> day = take_number(rest);
    if (!day || !is_word(rest, "w")) return false;
    cron.nearest_weekdays |= 1u << check(day, 1, 31);
  }
  return true;
}

bool Item::read_weekday(Cron& cron) {
  std::string_view rest = text_;
  if (!take_name(shape_, rest) && !take_number(rest)) return false;
  if (!rest.starts_with('#') && !is_word(rest, "l")) return false;
  std::uint32_t weekday = 1u << take_value() % 7;
  if (take(rest_, '#')) {
    int nth = check(take_number(rest_), 1, 5);
    if (!rest_.empty()) throw unreadable(shape_, text_);
    cron.nth_weekdays[static_cast<std::size_t>(nth)] |= weekday;
  } else {
    cron.last_weekdays |= weekday;
  }
  return true;
}

std::uint64_t read_item(Field field, const Shape& shape, std::string_view text, Cron& cron) {
  Item item(shape, text);
  if (field == Field::day && item.read_day(cron)) return 0;
  if (field == Field::weekday && item.read_weekday(cron)) return 0;
  return item.read_set();
}

std::uint64_t read_list(Field field, std::string_view text, Cron& cron) {
  const Shape shape = shape_of(field);
  std::uint64_t set = 0;
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find(',', begin);
    std::string_view item = text.substr(begin, end - begin);
    if (item.empty())
      throw Mistake{.message = shape.name + quoted(text) + " has an empty item",
                    .hint = "Write one comma between two items, and none at the ends."};
    set |= read_item(field, shape, item, cron);
  }
  return set;
}

} // namespace

void read_field(Field field, std::string_view text, Cron& cron) {
  std::uint64_t set = read_list(field, text, cron);
  bool begins_with_star = text.starts_with('*');
  switch (field) {
  case Field::second:
    cron.seconds = set;
    return;
  case Field::minute:
    cron.minutes = set;
    return;
  case Field::hour:
    cron.hours = static_cast<std::uint32_t>(set);
    cron.is_hourly = begins_with_star && text.find(',') == std::string_view::npos;
    return;
  case Field::day:
    cron.days = static_cast<std::uint32_t>(set);
    cron.is_day_restricted_by_both |= begins_with_star;
    return;
  case Field::month:
    cron.months = static_cast<std::uint32_t>(set);
    return;
  case Field::weekday:
    cron.weekdays = static_cast<std::uint32_t>(set | set >> 7) & 0x7f; // 7 is Sunday too
    cron.is_day_restricted_by_both |= begins_with_star;
    return;
  }
}

} // namespace jobq::core
