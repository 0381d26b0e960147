#include "worker/lane_keeper.hpp"

#include <algorithm>
#include <string>

#include "pg/clock.hpp"
#include "pg/log.hpp"
#include "pg/session.hpp"
#include "queue/lanes.hpp"
#include "queue/queue.hpp"
#include "settings.hpp"
#include "worker/step.hpp"

namespace jobq::worker {

namespace {

// One part in so many of the time.
constexpr core::Microseconds kLearningShare = 5;
constexpr core::Microseconds kCheckingShare = 100;

// A place of the table, if it has a lane of this database that there is something to look at.
std::optional<core::LaneSlot> lane_at(std::size_t place) {
  return queue::in_lanes([place](const core::LaneTable& table) {
    const core::LaneSlot* slot = table.at(place);
    bool is_ours = slot != nullptr && slot->key.queue.database == pg::my_database() &&
                   (slot->lane.cursor > core::kBeforeAll || slot->lane.is_partly_known());
    return is_ours ? std::optional(*slot) : std::nullopt;
  });
}

} // namespace

core::Microseconds LaneKeeper::wait_at(core::Microseconds now) const {
  if (!settings::reread_lanes) return core::kForever;
  return std::max<core::Microseconds>(not_before_ - now, 0);
}

// At the lane at hand, or the next one that is partly known or has changed since it was looked at.
std::optional<LaneKeeper::Look> LaneKeeper::next_look() {
  seen_.resize(queue::lanes().size());
  for (; place_ < seen_.size(); ++place_, from_ = core::kBeforeAll) {
    std::optional<core::LaneSlot> slot = lane_at(place_);
    if (!slot) continue;
    const Seen& seen = seen_[place_];
    Seen now = {.generation = slot->lane.generation, .cursor = slot->lane.cursor};
    bool is_new = now.generation != seen.generation || now.cursor != seen.cursor;
    if (now.generation != looking_at_.generation) from_ = core::kBeforeAll;
    if (from_ == core::kBeforeAll && !is_new && !slot->lane.is_partly_known()) continue;
    if (from_ == core::kBeforeAll) looking_at_ = now;
    return Look{.piece = {.key = slot->key, .from = from_}, .lane = slot->lane};
  }
  return std::nullopt;
}

void LaneKeeper::look_again() {
  if (!settings::reread_lanes) return;
  seen_.clear();
  queue::in_lanes([](core::LaneTable& table) { table.doubt_queues(pg::my_database()); });
}

void LaneKeeper::end_lane() {
  seen_[place_++] = looking_at_;
  from_ = core::kBeforeAll;
}

// From the beginning it is looked at as a lane that is known.
void LaneKeeper::learn(const Look& look) {
  from_ = queue::learn_piece(look.piece, look.lane).value_or(core::kBeforeAll);
}

void LaneKeeper::check(const Look& look) {
  queue::Checked checked = queue::check_piece(look.piece);
  if (checked.was_too_high) complain(look.piece.key);
  if (checked.next)
    from_ = *checked.next;
  else
    end_lane();
}

void LaneKeeper::work() {
  core::Microseconds began = pg::monotonic_now();
  std::optional<Look> look = next_look();
  if (!look) {
    place_ = 0;
    not_before_ = began + settings::longest_rest();
    return;
  }
  bool is_to_learn = look->lane.is_partly_known();
  std::optional<pg::Error> error =
      step("read lanes", [&] { is_to_learn ? learn(*look) : check(*look); });
  core::Microseconds now = pg::monotonic_now();
  if (error) {
    not_before_ = now + troubles_.meet(*error, "jobq manager: cannot read lanes");
    return;
  }
  troubles_.end();
  not_before_ = now + (now - began) * (is_to_learn ? kLearningShare : kCheckingShare);
}

void LaneKeeper::complain(const core::LaneKey& lane) const {
  std::optional<queue::Queue> queue = queue::find_queue(lane.queue.queue_id);
  pg::log_now("jobq manager: claims of queue \"" +
              (queue ? queue->name : std::to_string(lane.queue.queue_id)) + "\", priority " +
              std::to_string(lane.priority) +
              ", would have missed a job; they find it now. Unless it was put into jobq.ready by "
              "hand, this is a fault of jobq: please report it");
}

} // namespace jobq::worker
