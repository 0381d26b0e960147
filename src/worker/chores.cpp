#include "worker/chores.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "pg/clock.hpp"
#include "pg/log.hpp"
#include "settings.hpp"
#include "worker/step.hpp"

namespace jobq::worker {

namespace {

constexpr std::size_t kMostPassed = 10'000;
constexpr int kMostLines = 5;

// Between two steps of a chore whose rows keep coming, so that they are done together.
constexpr core::Microseconds kGathering = core::kSecond / 200;

} // namespace

// While a restore is under way a job's key or failures may not be there yet, and leases in it had
// no time to be renewed. When it counts as over; 0: there was none.
core::Microseconds ChoreKeeper::restored_at() const {
  core::Microseconds copied_at = queue::last_copy();
  if (chore_ == queue::Chore::promote || copied_at == 0) return 0;
  return copied_at + settings::grace();
}

bool ChoreKeeper::is_due(core::Microseconds now) const { return wait_at(now) <= 0; }

core::Microseconds ChoreKeeper::wait_at(core::Microseconds now) const {
  core::Microseconds mark = queue::mark_of(chore_);
  core::Microseconds ahead = mark == core::kForever ? core::kForever : mark - pg::now();
  if (second_look_at_) ahead = std::min(ahead, *second_look_at_ - now);
  return std::max({ahead, std::max(not_before_, restored_at()) - now, core::Microseconds{0}});
}

void ChoreKeeper::work() {
  const core::Mark before = queue::begin_reading(chore_);
  course_.from = before.low;
  queue::Page page;
  queue::Rest rest = {.next = before.instant};
  std::optional<pg::Error> error = step(queue::verb_of(chore_), [&] {
    page = queue::sweep_page(chore_, queue::kPage, course_);
    rest = page.is_last ? queue::rest_after(chore_, page, course_)
                        : queue::Rest{.next = course_.from.instant};
  });
  if (error)
    queue::give_up_reading(chore_, before);
  else
    queue::end_reading(chore_, rest.next, course_.from);
  if (error)
    not_before_ = pg::monotonic_now() +
                  troubles_.meet(*error, "jobq manager: cannot " +
                                             std::string(queue::verb_of(chore_)) + " jobs");
  else
    succeed(page, rest);
}

void ChoreKeeper::look_again() {
  course_.passed.clear();
  if (complained_.size() > kMostPassed) complained_.clear();
}

// Rows that are due but that nobody may take now are looked at again after a while, and hold up no
// others.
void ChoreKeeper::succeed(const queue::Page& page, const queue::Rest& rest) {
  troubles_.end();
  complain_of(page.bad);
  if (course_.passed.size() > kMostPassed) course_.passed.clear();
  core::Microseconds now = pg::monotonic_now();
  second_look_at_.reset();
  if (rest.is_any_due) second_look_at_ = now + std::min(settings::longest_rest(), core::kSecond);
  not_before_ = page.is_last ? now + kGathering : 0;
}

// Once for each job; but what is wrong with a whole page is not said a thousand times.
void ChoreKeeper::complain_of(const std::vector<queue::BadJob>& bad) {
  const std::string start = "jobq manager: cannot " + std::string(queue::verb_of(chore_));
  int news = 0;
  for (const queue::BadJob& job : bad) {
    if (!complained_.insert(job.job_id).second || ++news > kMostLines) continue;
    pg::log_now(start + " job " + std::to_string(job.job_id) + ": " + job.error +
                "; it stays where it is");
  }
  if (news > kMostLines)
    pg::log_now(start + " " + std::to_string(news - kMostLines) + " other jobs either");
}

} // namespace jobq::worker
