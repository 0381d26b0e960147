// JOBQ_MODEL_STEPS: how many steps over all settings, a million if not told. JOBQ_MODEL_SEED:
// another course of things. JOBQ_MODEL_TRACE: also tell how each missing rule was found.
#include "lane_model.hpp"

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace jobq::core::model {
namespace {

std::uint64_t told(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

std::uint64_t seed() { return told("JOBQ_MODEL_SEED", 1); }

const Setting kSettings[] = {
    {.name = "lulls",
     .processes = 7,
     .most_rows = 40,
     .failures = 0,
     .claims = 10,
     .aborts = 80,
     .sleeps = 1,
     .lulls = 30,
     .longest_sleep = 300},
    {.name = "one_lane"},
    {.name = "partly_known",
     .processes = 4,
     .most_rows = 30,
     .restarts = 1000,
     .aborts = 40,
     .builds = 100,
     .partly = 100,
     .learns = 20,
     .sleeps = 1,
     .longest_sleep = 100},
    {.name = "copies_and_checks",
     .processes = 4,
     .most_rows = 6,
     .builds = 40,
     .copies = 20,
     .sleeps = 1,
     .longest_sleep = 50},
    {.name = "restarts", .queues = 2, .priorities = 2, .slots = 3, .restarts = 300},
    {.name = "crowd", .processes = 9, .most_rows = 20, .failures = 30},
    {.name = "sleepers", .processes = 12, .most_rows = 30, .longest_sleep = 3000},
    {.name = "priorities", .priorities = 3},
    {.name = "few_groups", .groups = 2, .group_keys = 5},
    {.name = "few_lanes", .queues = 2, .priorities = 2, .slots = 2, .known_queues = 1},
    {.name = "no_lanes", .queues = 2, .priorities = 2, .slots = 0, .known_queues = 0, .groups = 0},
    {.name = "clock_stands", .priorities = 3, .slots = 2, .clock_forward = 1},
    {.name = "clock_back", .priorities = 3, .slots = 2, .clock_back = 20},
    {.name = "clock_leaps", .priorities = 3, .slots = 2, .clock_back = 3, .furthest_back = 2000},
    {.name = "copies", .queues = 2, .priorities = 2, .slots = 3, .copies = 8},
    {.name = "copies_stay", .priorities = 2, .builds = 5, .copies = 8},
    {.name = "databases", .databases = 2, .queues = 2, .buckets = 1, .forgets = 300, .copies = 3},
    {.name = "forgets", .priorities = 2, .slots = 3, .forgets = 1000},
    {.name = "partly_known_and_copies",
     .processes = 7,
     .group_keys = 2,
     .most_rows = 30,
     .clock_forward = 10,
     .restarts = 300,
     .builds = 50,
     .partly = 100,
     .copies = 10,
     .learns = 20,
     .sleeps = 3,
     .longest_sleep = 600},
    {.name = "few_rows",
     .processes = 4,
     .slots = 1,
     .group_keys = 1,
     .most_rows = 2,
     .clock_forward = 0,
     .failures = 5,
     .builds = 20,
     .sleeps = 5,
     .longest_sleep = 100},
};

// Rules that no course of things here misses, and why they stand all the same.
const std::set<Rule> kSpare = {
    // Only a tag that came past the lanes is above the highest.
    Rule::lower_raises_highest,
    // A lane in use is not reused, so a claim meets no other generation. Without both, which is
    // reuse_and_generation, a row is lost.
    Rule::same_generation,
    // Who has put without a lane keeps a builder from knowing all, so what it has put into a lane
    // that is reused is feared all the same.
    Rule::laneless_attaches,
    // The look tells which rows are free now, not which the snapshot shows.
    Rule::check_before_snapshot,
    // Too rare for chance: lane_table_test has the course of things.
    Rule::check_generation,
    Rule::check_laneless,
    Rule::learns_no_more,
};

class Lanes : public testing::TestWithParam<Setting> {};

TEST_P(Lanes, LoseNoRow) {
  World world(GetParam(), seed(), Rule::none);
  world.run(told("JOBQ_MODEL_STEPS", 1'000'000) / std::size(kSettings));
  ASSERT_EQ(world.fault(), "") << "seed " << seed() << "\n" << world.trace();
}

INSTANTIATE_TEST_SUITE_P(LaneModel, Lanes, testing::ValuesIn(kSettings),
                         [](const auto& tested) { return std::string(tested.param.name); });

std::vector<Rule> needed_rules() {
  std::vector<Rule> needed;
  for (Rule rule : every_rule())
    if (rule != Rule::none && !kSpare.contains(rule)) needed.push_back(rule);
  return needed;
}

class Without : public testing::TestWithParam<Rule> {};

TEST_P(Without, TheRuleTheModelFails) {
  for (std::uint64_t steps : {10'000, 100'000, 500'000}) {
    for (const Setting& setting : kSettings) {
      World world(setting, 1, GetParam());
      world.run(steps);
      if (world.fault().empty()) continue;
      std::cout << "without " << name_of(GetParam()) << ", " << setting.name << ", "
                << world.fault() << "\n";
      if (told("JOBQ_MODEL_TRACE", 0) != 0) std::cout << world.trace();
      return;
    }
  }
  FAIL() << "nobody misses " << name_of(GetParam());
}

INSTANTIATE_TEST_SUITE_P(LaneModel, Without, testing::ValuesIn(needed_rules()),
                         [](const auto& tested) { return name_of(tested.param); });

class WithoutSpare : public testing::TestWithParam<Rule> {};

TEST_P(WithoutSpare, TheRuleTheModelHolds) {
  for (const Setting& setting : kSettings) {
    World world(setting, 1, GetParam());
    world.run(10'000);
    ASSERT_EQ(world.fault(), "") << setting.name << "\n" << world.trace();
  }
}

INSTANTIATE_TEST_SUITE_P(LaneModel, WithoutSpare, testing::ValuesIn(kSpare),
                         [](const auto& tested) { return name_of(tested.param); });

TEST(LaneModel, GoesEverywhere) {
  const char* const events[] = {"commit is visible",
                                "abort is visible",
                                "subabort is visible",
                                "insert",
                                "cancel takes",
                                "purge takes from",
                                "claim takes",
                                "claim skips a locked row",
                                "claim leaves a free row",
                                "claim cannot serialize",
                                "lanes are complete",
                                "lanes are not complete",
                                "end survey",
                                "reserves a lane",
                                "finds no place for a lane",
                                "gives the lane back",
                                "installs: lowest, highest",
                                "check ends",
                                "copies: tag, group",
                                "copy's callback",
                                "reserves a foreign lane",
                                "knows all",
                                "gives turns back: before, after",
                                "forget",
                                "restart"};
  std::map<std::string_view, std::uint64_t> counts;
  for (const Setting& setting : kSettings) {
    World world(setting, seed(), Rule::none);
    world.run(20'000);
    for (const char* event : events) counts[event] += world.count_of(event);
  }
  for (const char* event : events) EXPECT_GT(counts[event], 20U) << event;
}

} // namespace
} // namespace jobq::core::model
