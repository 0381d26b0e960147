#include "worker/caller.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "pg/clock.hpp"
#include "pg/notify.hpp"
#include "pg/statement.hpp"
#include "pg/transaction.hpp"
#include "worker/step.hpp"

namespace jobq::worker {

namespace {

constexpr const char* kChannel = "jobq";

// Between two rounds of calls: the least after one that came alone, the most when they keep coming.
constexpr core::Microseconds kLeast = 10'000;
constexpr core::Microseconds kMost = 51'000;

// 0 stands for the queue `default`, called before it had a number.
constinit pg::Statement
    select_names("SELECT name FROM jobq.queue WHERE queue_id OPERATOR(pg_catalog.=) ANY ($1)"
                 " OR (0 OPERATOR(pg_catalog.=) ANY ($1)"
                 " AND name OPERATOR(pg_catalog.=) 'default')");
constinit pg::Statement select_all_names("SELECT name FROM jobq.queue");

void notify_of(const queue::Calls& calls) {
  pg::make_commit_lazy();
  pg::Rows names = calls.is_all ? select_all_names.run_freely({})
                                : select_names.run_freely({pg::int8_array(calls.queue_ids)});
  for (std::uint64_t row = 0; row < names.size(); ++row)
    pg::notify(kChannel, std::string(names.text(row, 0)));
}

} // namespace

Caller::Caller() : pace_(kLeast, kMost) {}

// While it is quiet, calls come without waking anybody, so they are looked for when it is over.
core::Microseconds Caller::wait_at(core::Microseconds now) const {
  if (queue::has_calls()) return std::max(pace_.wait_at(now), not_before_ - now);
  return quiet_until_ > now ? quiet_until_ - now : core::kForever;
}

bool Caller::is_due(core::Microseconds now) const {
  return queue::has_calls() && wait_at(now) <= 0;
}

void Caller::work() {
  be_quiet_for_a_while();
  queue::Calls calls = queue::take_calls();
  std::optional<pg::Error> error = step("notify", [&] { notify_of(calls); });
  if (!error) return troubles_.end();
  queue::call_again(calls);
  not_before_ =
      pg::monotonic_now() + troubles_.meet(*error, "jobq manager: cannot notify listeners");
}

void Caller::be_quiet_for_a_while() {
  core::Microseconds now = pg::monotonic_now();
  pace_.note(now);
  quiet_until_ = now + pace_.wait_at(now);
  queue::be_quiet_until(quiet_until_);
}

} // namespace jobq::worker
