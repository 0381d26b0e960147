#include "unit/made_zone.hpp"
#include "unit/schedule_model.hpp"

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

using Flaw = ScheduleModel::Flaw;

constexpr Microseconds kNewYear = 9132 * kDay; // 2025
constexpr std::string_view kTexts[] = {"*/20 * * * *", "30 1,2 * * *", "0 6-18 * * mon-fri",
                                       "0 0 L * *", "7 minutes"};

// Forward in March, back in November.
Zone new_york() {
  Seconds march = day_of({.year = 2025, .month = 3, .day = 9}) * kSecondsOfDay + 7 * 3600;
  Seconds november = day_of({.year = 2025, .month = 11, .day = 2}) * kSecondsOfDay + 6 * 3600;
  return made_zone(-5 * 3600, {{march, -4 * 3600}, {november, -5 * 3600}});
}

ScheduleModel year_of(std::string_view text, CatchUp catch_up, Flaw flaw, std::uint32_t seed) {
  const Rule rule = {.timetable = std::get<Timetable>(read_timetable(text)), .zone = new_york()};
  ScheduleModel model(rule, catch_up, flaw, pick_at_random(seed));
  model.live(kNewYear, kNewYear + 365 * kDay);
  return model;
}

TEST(ScheduleModel, NoInstantIsHandledTwiceAndNoneIsLost) { // cases 1, 2, 4, 6, 11
  std::uint32_t seed = 1;
  for (std::string_view text : kTexts) {
    for (CatchUp catch_up : {CatchUp::none, CatchUp::once, CatchUp::all}) {
      ScheduleModel model = year_of(text, catch_up, Flaw::none, ++seed);
      EXPECT_EQ(model.twice(), 0) << text;
      EXPECT_EQ(model.lost(), 0) << text;
      EXPECT_EQ(model.early(), 0) << text;
      EXPECT_GE(model.fired(), 5u) << text;
    }
  }
}

TEST(ScheduleModel, PoliciesDiffer) {
  std::size_t none = year_of("*/20 * * * *", CatchUp::none, Flaw::none, 4).fired();
  std::size_t once = year_of("*/20 * * * *", CatchUp::once, Flaw::none, 4).fired();
  std::size_t all = year_of("*/20 * * * *", CatchUp::all, Flaw::none, 4).fired();
  EXPECT_LT(none, once);
  EXPECT_LT(once, all);
}

// The model notices when a rule is left out.
TEST(ScheduleModel, WithoutTheKeyAnInstantIsHandledTwice) {
  EXPECT_GT(year_of("*/20 * * * *", CatchUp::once, Flaw::no_key, 5).twice(), 0);
}

TEST(ScheduleModel, ByTheClockInsteadOfTheLastInstantOneIsHandledTwice) {
  ScheduleModel model = year_of("*/20 * * * *", CatchUp::once, Flaw::next_from_now, 6);
  EXPECT_GT(model.twice(), 0);
  EXPECT_GT(model.lost(), 0);
}

TEST(ScheduleModel, LookingAheadAloneLosesInstants) {
  EXPECT_GT(year_of("*/20 * * * *", CatchUp::once, Flaw::looks_ahead_only, 7).lost(), 0);
}

} // namespace
} // namespace jobq::core
