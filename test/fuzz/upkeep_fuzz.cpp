#include "core/upkeep.hpp"

#include "fuzz/fuzz.hpp"

namespace jobq::core {
namespace {

using State = Upkeep::State;

// A launcher that starts what is due, and managers to which anything may happen that can.
class Life {
 public:
  explicit Life(Pick pick) : pick_(std::move(pick)) {}

  void step() {
    now_ += pick_(0, 2) * pick_(0, kHour);
    switch (upkeep_.state()) {
    case State::wanted:
      if (upkeep_.is_due(now_)) return start();
      return ask();
    case State::absent:
      return ask();
    default:
      return live();
    }
  }

 private:
  void ask() {
    upkeep_.ask();
    is_asked_ = true;
    EXPECT_NE(upkeep_.state(), State::absent);
    EXPECT_EQ(upkeep_.is_due(now_), upkeep_.state() == State::wanted);
  }

  void start() {
    upkeep_.note_start(now_);
    is_asked_ = false;
    EXPECT_EQ(upkeep_.state(), State::starting);
    EXPECT_EQ(upkeep_.started_at(), now_);
    EXPECT_FALSE(upkeep_.is_due(now_));
  }

  void live() {
    switch (pick_(0, 4)) {
    case 0:
      return ask();
    case 1:
      upkeep_.note_up();
      EXPECT_EQ(upkeep_.state(), State::up);
      return;
    case 2:
      upkeep_.note_absence();
      failures_ = 0;
      // Whoever asked while it looked is not forgotten.
      EXPECT_EQ(upkeep_.state(), is_asked_ ? State::wanted : State::absent);
      EXPECT_EQ(upkeep_.is_due(now_), is_asked_);
      return;
    case 3:
      upkeep_.note_leave();
      failures_ = 0;
      EXPECT_TRUE(upkeep_.is_due(now_));
      return;
    default:
      fail();
    }
  }

  // At once, then after 1, 2, 4, ... seconds, a minute at most.
  void fail() {
    if (upkeep_.state() == State::up && now_ - upkeep_.started_at() >= 60 * kSecond) failures_ = 0;
    Microseconds wait = 0;
    for (int i = 0; i < failures_ && wait < 60 * kSecond; ++i)
      wait = wait == 0 ? kSecond : 2 * wait;
    wait = wait > 60 * kSecond ? 60 * kSecond : wait;
    ++failures_;

    upkeep_.note_failure(now_);
    EXPECT_TRUE(upkeep_.is_due(now_ + wait));
    EXPECT_TRUE(wait == 0 || !upkeep_.is_due(now_ + wait - 1));
  }

  Pick pick_;
  Upkeep upkeep_;
  Microseconds now_ = 1;
  int failures_ = 0;
  bool is_asked_ = false;
};

} // namespace

void hold(Bytes& bytes) {
  Life life(pick_by(bytes));
  while (bytes.remaining_bytes() > 0) life.step();
}

} // namespace jobq::core
