#include "core/pace.hpp"

#include "fuzz/fuzz.hpp"

namespace jobq::core {

// Somebody wants it at instants of its own, and waits as it is told.
void hold(Bytes& bytes) {
  const Pick pick = pick_by(bytes);
  const Microseconds least = pick(1, kHour);
  const Microseconds most = pick(least, 2 * kHour);
  Pace pace(least, most);
  Microseconds now = pick(least, kDay);
  EXPECT_EQ(pace.wait_at(now), 0);

  pace.note(now);
  EXPECT_EQ(pace.wait_at(now), least);
  Microseconds interval = least;
  while (bytes.remaining_bytes() > 0) {
    const Microseconds gap = pick(0, 3 * kHour);
    const Microseconds wait = pace.wait_at(now + gap);
    EXPECT_EQ(wait, gap < interval ? interval - gap : 0);

    now += gap + wait;
    EXPECT_EQ(pace.wait_at(now), 0);
    pace.note(now);
    const bool is_in_a_row = gap + wait < interval + least;
    interval = !is_in_a_row ? least : 2 * interval > most ? most : 2 * interval;
    EXPECT_EQ(pace.wait_at(now), interval);
  }
}

} // namespace jobq::core
