#include "core/upkeep.hpp"

#include <algorithm>

#include "core/pure.hpp"

namespace jobq::core {

namespace {

constexpr Microseconds kLongLife = 60 * kSecond;
constexpr Microseconds kLongestWait = 60 * kSecond;
constexpr int kMostDoublings = 6;

} // namespace

void Upkeep::ask() {
  is_asked_ = true;
  if (state_ == State::absent) state_ = State::wanted;
  if (state_ == State::wanted) try_at_ = 0;
}

void Upkeep::note_start(Microseconds now) {
  state_ = State::starting;
  started_at_ = now;
  is_asked_ = false;
}

void Upkeep::note_up() { state_ = State::up; }

void Upkeep::note_absence() {
  state_ = is_asked_ ? State::wanted : State::absent;
  try_at_ = 0;
  failures_ = 0;
}

void Upkeep::note_leave() {
  state_ = State::wanted;
  try_at_ = 0;
  failures_ = 0;
}

// The first failure after a long life is forgiven.
void Upkeep::note_failure(Microseconds now) {
  if (state_ == State::up && now - started_at_ >= kLongLife) failures_ = 0;
  Microseconds wait = failures_ == 0 ? 0 : kSecond << std::min(failures_ - 1, kMostDoublings);
  state_ = State::wanted;
  try_at_ = now + std::min(wait, kLongestWait);
  ++failures_;
}

} // namespace jobq::core
