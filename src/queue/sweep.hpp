// The sweep: due jobs become ready, the jobs of dead workers come back or die, and what was kept
// long enough goes. Any number of processes may sweep at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/mark.hpp"
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
  core::Microseconds at = 0; // what was due then
  std::int64_t found = 0;    // rows taken up, bad ones among them
  bool is_last = true;       // nothing more was due
  std::vector<BadJob> bad;
};

// The most rows of a page.
inline constexpr std::int64_t kPage = 1000;

// How far a sweep has come along a line: below `from` it has nothing to see, and it passes over the
// jobs that were bad.
struct Course {
  core::Place from = core::kBeginning;
  std::vector<std::int64_t> passed;
};

// Does the next rows that are due, at most so many and at most kPage, in the caller's transaction.
// Afterwards the course begins at the first row that can be seen, whatever is wrong with that one
// (at kEnd if there is none), or where it did if that is not due.
Page sweep_page(Chore chore, std::int64_t most, Course& course);

// What a last page has left, but for jobs passed over: rows that were due and that nobody may take
// now (another transaction has them, a lease is in grace), and the instant of the first that was
// not due yet; kForever: there is none.
struct Rest {
  bool is_any_due = false;
  core::Microseconds next = core::kForever;
};
Rest rest_after(Chore chore, const Page& page, const Course& course);

} // namespace jobq::queue
