#include "core/cron_text.hpp"

#include <array>
#include <string>

#include "core/cron_field.hpp"
#include "core/mistake.hpp"
#include "core/words.hpp"

#include "core/pure.hpp"

namespace jobq::core {

namespace {

constexpr std::array kFields = {Field::second, Field::minute, Field::hour,
                                Field::day,    Field::month,  Field::weekday};

Mistake wrong_count(std::size_t count) {
  return {.message = "a cron expression has five fields, or six with seconds first, not " +
                     std::to_string(count),
          .hint = "Write minute, hour, day of month, month and day of week, as in '0 3 * * *', or "
                  "an interval such as '5 minutes'."};
}

} // namespace

Cron read_cron(std::string_view text) {
  std::array<std::string_view, kFields.size()> words;
  std::size_t count = 0;
  for (auto word = take_word(text); !word.empty(); word = take_word(text), ++count)
    if (count < words.size()) words[count] = word;
  if (count > kFields.size() || count + 1 < kFields.size()) throw wrong_count(count);

  Cron cron;
  for (std::size_t i = 0; i < count; ++i)
    read_field(kFields[kFields.size() - count + i], words[i], cron);
  if (!can_match(cron))
    throw Mistake{.message = "no date matches the cron expression",
                  .hint = "Choose days that its months have; L is the last day of a month."};
  return cron;
}

} // namespace jobq::core
