#include "core/timetable.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/cron_text.hpp"
#include "core/interval_text.hpp"
#include "core/words.hpp"

#include "core/pure.hpp"

namespace jobq::core {

namespace {

struct Word {
  std::string_view name;
  std::string_view cron;
};

constexpr Word kWords[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};
constexpr std::string_view kReboot = "@reboot";

Timetable of_cron(std::string_view text) {
  return {.kind = Timetable::Kind::cron, .cron = read_cron(text)};
}

Timetable of_interval(std::string_view text) {
  return {.kind = Timetable::Kind::interval, .interval = read_interval(text)};
}

Timetable of_word(std::string_view text) {
  std::string_view rest = text;
  std::string_view name = take_word(rest);
  if (!rest.empty())
    throw Mistake{.message = "invalid schedule" + quoted(text),
                  .hint = "A word such as @daily stands alone."};
  if (is_word(name, kReboot)) return {.kind = Timetable::Kind::reboot};
  for (const Word& word : kWords)
    if (is_word(name, word.name)) return of_cron(word.cron);
  throw Mistake{.message = "invalid schedule" + quoted(text),
                .hint = "The words are @yearly, @annually, @monthly, @weekly, @daily, @midnight, "
                        "@hourly and @reboot."};
}

// "every 5 minutes" and "@every 5 minutes" are what an interval is called elsewhere.
void refuse_every(std::string_view text) {
  std::string_view rest = text;
  std::string_view name = take_word(rest);
  take_while(rest, is_blank);
  if (!(is_word(name, "every") || is_word(name, "@every")) || !is_interval(rest)) return;
  read_interval(rest);
  std::string part = quoted(rest);
  std::ranges::replace(part, '"', '\'');
  throw Mistake{.message = "invalid schedule" + quoted(text),
                .hint = part.empty() ? "Write the interval alone." : "Write" + part + "."};
}

Timetable read(std::string_view text) {
  refuse_every(text);
  if (text.starts_with('@')) return of_word(text);
  return is_interval(text) ? of_interval(text) : of_cron(text);
}

std::string_view trimmed(std::string_view text) {
  take_while(text, is_blank);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

} // namespace

std::variant<Timetable, Mistake> read_timetable(std::string_view text) {
  try {
    text = trimmed(text);
    if (text.empty())
      throw Mistake{.message = "the schedule is empty",
                    .hint = "Write a cron expression such as '0 3 * * *', a word such as @daily, "
                            "or an interval such as '5 minutes'."};
    return read(text);
  } catch (Mistake& mistake) {
    return std::move(mistake);
  }
}

} // namespace jobq::core
