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

constexpr std::int64_t kPage = 1000;
constexpr std::size_t kMostPassed = 10'000;
constexpr int kMostLines = 5;

// Between two steps of a chore whose rows keep coming, so that they are done together.
constexpr core::Microseconds kGathering = core::kSecond / 200;

core::Microseconds sweep_interval() { return std::int64_t{settings::sweep_interval} * 1000; }

} // namespace

// While a restore is under way a job's key or failures may not be there yet, and leases in it had
// no time to be renewed.
core::Microseconds ChoreKeeper::due_at() const {
  core::Microseconds mark = queue::mark_of(chore_);
  core::Microseconds copied_at = queue::last_copy();
  if (chore_ == queue::Chore::promote || copied_at == 0) return mark;
  return std::max(mark, copied_at + std::int64_t{settings::sweep_grace} * 1000);
}

bool ChoreKeeper::is_due(core::Microseconds now) const {
  return now >= not_before_ && due_at() <= pg::now();
}

core::Microseconds ChoreKeeper::wait_at(core::Microseconds now) const {
  core::Microseconds due = due_at();
  if (due == core::kForever) return core::kForever;
  return std::max({due - pg::now(), not_before_ - now, core::Microseconds{0}});
}

void ChoreKeeper::work() {
  core::Microseconds mark = queue::mark_of(chore_);
  queue::begin_reading(chore_);
  queue::Page page;
  core::Microseconds left = mark;
  std::optional<pg::Error> error = step(queue::verb_of(chore_), [&] {
    page = queue::sweep_page(chore_, kPage, passed_);
    if (page.is_last) left = queue::next_instant(chore_, passed_);
  });
  queue::end_reading(chore_, error ? mark : left);
  if (error)
    fail(*error);
  else
    succeed(page);
}

void ChoreKeeper::look_again() {
  passed_.clear();
  if (complained_.size() > kMostPassed) complained_.clear();
}

void ChoreKeeper::fail(const pg::Error& error) {
  if (pg::is_asked_to_leave()) return;
  not_before_ = pg::monotonic_now() + troubles_.wait_after(error);
  if (troubles_.is_news(error))
    pg::log_now("jobq manager: cannot " + std::string(queue::verb_of(chore_)) +
                " jobs: " + describe(error));
}

// Rows that are due but that nobody may take now (another has them, their lease is in grace) are
// looked at again after a while.
void ChoreKeeper::succeed(const queue::Page& page) {
  troubles_.end();
  complain_of(page.bad);
  if (passed_.size() > kMostPassed) passed_.clear();
  bool is_in_vain = page.found == 0 && queue::mark_of(chore_) <= pg::now();
  if (!page.is_last)
    not_before_ = 0;
  else
    not_before_ = pg::monotonic_now() + (is_in_vain ? sweep_interval() : kGathering);
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
