#include "core/mark.hpp"

#include <array>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace jobq::core {
namespace {

TEST(Mark, IsUnreadAtFirst) { EXPECT_EQ(Mark{}.instant, 0); }

TEST(Mark, HoldsTheEarliestRow) {
  Mark mark;
  mark.begin_reading();
  mark.end_reading(kForever);
  EXPECT_EQ(mark.instant, kForever);
  mark.lower(500);
  mark.lower(700);
  EXPECT_EQ(mark.instant, 500);
  mark.lower(300);
  EXPECT_EQ(mark.instant, 300);
}

TEST(Mark, WhatIsLoweredWhileItIsReadStays) {
  Mark mark;
  mark.begin_reading();
  mark.lower(100);
  mark.end_reading(400);
  EXPECT_EQ(mark.instant, 100);
}

TEST(Mark, AReadingRaisesIt) {
  Mark mark{.instant = 100};
  mark.begin_reading();
  mark.end_reading(400);
  EXPECT_EQ(mark.instant, 400);
}

// How the reader and the writers go about it; all but the first are wrong.
enum class Rule { right, begins_after_snapshot, sets_the_mark, writer_lowers_first };

// Writers, each of which makes its row visible and then lowers the mark, and one reader: begin,
// snapshot, look and take what is due, end. All interleave at random. The mark may be early at any
// time, but never late once the writer of a row is through.
class Life {
 public:
  Life(std::uint32_t seed, Rule rule) : random_(seed), rule_(rule) {}

  // How often the mark was too late.
  int run(int steps) {
    int late = 0;
    for (int i = 0; i < steps; ++i) {
      if (pick(0, 2) == 0)
        read();
      else
        write(writers_[static_cast<std::size_t>(pick(0, 3))]);
      late += is_late() ? 1 : 0;
    }
    return late;
  }

 private:
  struct Writer {
    int stage = 0;
    Microseconds row = 0;
  };

  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  void write(Writer& writer) {
    switch (writer.stage++) {
    case 0:
      writer.row = now_ + pick(1, 50);
      if (rule_ == Rule::writer_lowers_first) mark_.lower(writer.row);
      return;
    case 1:
      visible_.insert(writer.row);
      return;
    default:
      if (rule_ != Rule::writer_lowers_first) mark_.lower(writer.row);
      if (visible_.contains(writer.row)) told_.insert(writer.row);
      writer.stage = 0;
    }
  }

  void read() {
    switch (stage_++) {
    case 0:
      now_ += pick(0, 10);
      if (rule_ != Rule::begins_after_snapshot) begin();
      return;
    case 1:
      seen_ = visible_;
      return;
    case 2:
      if (rule_ == Rule::begins_after_snapshot) begin();
      take_due();
      return;
    default:
      end();
      stage_ = 0;
    }
  }

  void begin() {
    // The rows that the reader has yet to see are its own care from here on.
    covered_ = told_;
    mark_.begin_reading();
  }

  void take_due() {
    for (Microseconds row : seen_) {
      if (row > now_) continue;
      visible_.erase(visible_.find(row));
      if (auto told = told_.find(row); told != told_.end()) told_.erase(told);
      if (auto covered = covered_.find(row); covered != covered_.end()) covered_.erase(covered);
    }
    std::erase_if(seen_, [this](Microseconds row) { return row <= now_; });
  }

  void end() {
    Microseconds left = seen_.empty() ? kForever : *seen_.begin();
    if (rule_ == Rule::sets_the_mark)
      mark_.instant = left;
    else
      mark_.end_reading(left);
    covered_.clear();
  }

  // Some row that is there and told of lies before the mark, and nobody is about to see it.
  bool is_late() const {
    for (Microseconds row : told_) {
      if (!visible_.contains(row) || covered_.contains(row)) continue;
      return row < mark_.instant;
    }
    return false;
  }

  std::mt19937 random_;
  Rule rule_;
  Mark mark_;
  Microseconds now_ = 1;
  int stage_ = 0;
  std::array<Writer, 4> writers_;
  std::multiset<Microseconds> visible_; // rows that a snapshot shows
  std::multiset<Microseconds> told_;    // rows whose writers are through
  std::multiset<Microseconds> covered_; // rows told of before the reading that is under way
  std::multiset<Microseconds> seen_;
};

int times_late(Rule rule) {
  int late = 0;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) late += Life(seed, rule).run(40'000);
  return late;
}

TEST(Mark, IsNeverTooLate) { EXPECT_EQ(times_late(Rule::right), 0); }

// What each rule is for, and that this test would see it broken.
TEST(Mark, IsLateIfTheReaderBeginsAfterItsSnapshot) {
  EXPECT_GT(times_late(Rule::begins_after_snapshot), 0);
}

TEST(Mark, IsLateIfTheReaderForgetsWhatWasLoweredMeanwhile) {
  EXPECT_GT(times_late(Rule::sets_the_mark), 0);
}

TEST(Mark, IsLateIfTheWriterLowersBeforeItsRowIsVisible) {
  EXPECT_GT(times_late(Rule::writer_lowers_first), 0);
}

} // namespace
} // namespace jobq::core
