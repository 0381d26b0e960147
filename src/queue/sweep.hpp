// The sweep: due jobs become ready, the jobs of dead workers come back or die, and what was kept
// long enough goes. Any number of processes may sweep at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "queue/agenda.hpp"

namespace jobq::queue {

const char* verb_of(Chore chore); // promote, rescue, prune

struct Swept {
  std::int64_t promoted = 0;
  std::int64_t retried = 0;
  std::int64_t died = 0;

  void add(const Swept& other) {
    promoted += other.promoted;
    retried += other.retried;
    died += other.died;
  }
};

// A job that could not be moved; it stays where it is.
struct BadJob {
  std::int64_t job_id;
  std::string error;
};

struct Page {
  Swept swept;
  std::int64_t found = 0; // rows taken up, bad ones among them
  bool is_last = true;    // nothing more was due
  std::vector<BadJob> bad;
};

// Does the first rows that are due, at most so many and at most 1,000, in the caller's transaction.
// Jobs in `passed` are passed over; a bad one is added to it.
Page sweep_page(Chore chore, std::int64_t most, std::vector<std::int64_t>& passed);

// The instant of the chore's next row, due or not, but for those passed over; kForever: there is
// none.
core::Microseconds next_instant(Chore chore, const std::vector<std::int64_t>& passed);

} // namespace jobq::queue
