#include "lane_model.hpp"

#include <algorithm>
#include <sstream>

namespace jobq::core::model {

namespace {

std::string told(Tag tag) { return tag == kNoTag ? "none" : std::to_string(tag); }

constexpr std::size_t kEventsKept = 60;
constexpr std::uint64_t kStepsOfOneEra = 2000; // then all end, and what is left is drained

} // namespace

const char* name_of(Rule rule) {
  switch (rule) {
#define JOBQ_LANE_RULE(name)                                                                       \
  case Rule::name:                                                                                 \
    return #name;
    JOBQ_LANE_RULES(JOBQ_LANE_RULE)
#undef JOBQ_LANE_RULE
  }
  return "";
}

std::vector<Rule> every_rule() {
  return {
#define JOBQ_LANE_RULE(name) Rule::name,
      JOBQ_LANE_RULES(JOBQ_LANE_RULE)
#undef JOBQ_LANE_RULE
  };
}

World::World(const Setting& setting, std::uint64_t seed, Rule out)
    : setting_(setting), out_(out), random_(seed), slots_(setting.slots), buckets_(setting.buckets),
      queues_(setting.known_queues), groups_(setting.groups),
      table_(common_, slots_, buckets_, queues_, groups_) {
  start_all();
}

// --- Small things

std::int64_t World::pick(std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
}

LaneKey World::pick_key() {
  return {.queue = {.database = static_cast<std::uint32_t>(pick(1, setting_.databases)),
                    .queue_id = pick(1, setting_.queues)},
          .priority = static_cast<std::int32_t>(pick(1, setting_.priorities))};
}

void World::note(const Process& p, const char* what, const LaneKey& key, std::int64_t value,
                 std::int64_t other) {
  events_[steps_ % kEventsKept] = {steps_, p.id, what, key, value, other};
  ++counts_[what];
}

void World::fail(const std::string& why) {
  if (fault_.empty()) fault_ = "step " + std::to_string(steps_) + ": " + why;
}

std::uint64_t World::count_of(std::string_view what) const {
  std::uint64_t count = 0;
  for (const auto& [name, times] : counts_) count += name == what ? times : 0;
  return count;
}

std::string World::trace() const {
  std::ostringstream out;
  for (std::size_t i = 1; i <= kEventsKept; ++i) {
    const Event& event = events_[(steps_ + i) % kEventsKept];
    if (event.process == kNone) continue;
    out << event.step << "  T" << event.process << "  " << event.what;
    if (event.key.priority != 0)
      out << "  lane " << event.key.queue.queue_id << "." << event.key.priority;
    out << "  " << told(event.value) << " " << told(event.other) << "\n";
  }
  for (const LaneSlot& slot : slots_) {
    if (slot.state != LaneSlot::State::open) continue;
    out << "lane " << slot.key.queue.queue_id << "." << slot.key.priority << ": cursor "
        << slot.lane.cursor << " vtime " << slot.lane.vtime << " highest " << slot.lane.highest
        << " start " << slot.lane.start << (slot.lane.is_foreign ? " foreign" : "") << " overflow "
        << slot.lane.overflow << " lowerings " << slot.lane.lowerings << " open " << slot.lane.open
        << " generation " << slot.lane.generation << "\n";
  }
  for (const Row& row : rows_)
    if (row.is_live())
      out << "row " << row.id << " in " << row.key.queue.queue_id << "." << row.key.priority
          << ": tag " << row.tag << " group " << row.group << " creator " << row.creator
          << " deleter " << row.deleter << (row.is_foreign ? " foreign" : "") << "\n";
  return out.str();
}

Lane* World::lane_of(const LaneKey& key) {
  for (LaneSlot& slot : slots_)
    if (slot.state == LaneSlot::State::open && slot.key == key) return &slot.lane;
  return nullptr;
}

bool World::is_read_up(Lane lane) const {
  if (without(Rule::foreign_is_not_read_up)) lane.is_foreign = false;
  return lane.is_read_up();
}

Group* World::group_of(const Touch& touch, std::uint64_t hash) {
  Lane* lane = lane_of(touch.key);
  return lane != nullptr ? find_group(groups_, {.hash = hash, .generation = lane->generation})
                         : nullptr;
}

// --- The rows

std::uint64_t World::take_snapshot(const Process& p) const {
  return p.is_repeatable_read ? p.snapshot : snapshots_;
}

bool World::is_visible(const Row& row, const Process& p, std::uint64_t snapshot) const {
  if (!row.is_inserted || row.deleter == p.id || row.gone <= snapshot) return false;
  return row.creator == p.id || (row.creator == kNone && row.visible <= snapshot);
}

// The first row of the snapshot in (tag, id) order behind that place.
Row* World::next_row(const Process& p, const LaneKey& key, Tag from, std::int64_t after_id,
                     std::uint64_t snapshot) {
  Row* next = nullptr;
  for (Row& row : rows_) {
    if (row.key != key || std::pair(row.tag, row.id) <= std::pair(from, after_id)) continue;
    if (!is_visible(row, p, snapshot)) continue;
    if (next == nullptr || std::pair(row.tag, row.id) < std::pair(next->tag, next->id)) next = &row;
  }
  return next;
}

Row* World::any_row(const Process& p, const LaneKey& key) {
  Row* found = nullptr;
  std::int64_t seen = 0;
  for (Row& row : rows_) {
    if (row.key != key || row.deleter != kNone || !is_visible(row, p, snapshots_)) continue;
    if (pick(0, seen++) == 0) found = &row;
  }
  return found;
}

void World::make_commit_visible(Process& p) {
  ++snapshots_;
  for (Row& row : rows_) {
    if (row.deleter == p.id) {
      row.deleter = kNone;
      if (!std::exchange(row.is_only_locked, false)) row.gone = snapshots_;
    }
    if (row.creator != p.id) continue;
    row.creator = kNone;
    row.visible = snapshots_;
  }
  p.phase = Phase::committed;
  forget_dead_rows();
}

// What no snapshot shows.
void World::forget_dead_rows() {
  std::uint64_t oldest = snapshots_;
  for (const auto& process : processes_)
    if (!process->is_parked) oldest = std::min(oldest, process->snapshot);
  std::erase_if(rows_, [&](const Row& row) { return row.gone <= oldest; });
}

std::size_t World::live_rows() const {
  return static_cast<std::size_t>(std::ranges::count_if(rows_, &Row::is_live));
}

// Of all levels from that one on.
void World::make_abort_visible(Process& p, int level) {
  std::erase_if(rows_,
                [&](const Row& row) { return row.creator == p.id && row.creator_level >= level; });
  for (Row& row : rows_)
    if (row.deleter == p.id && row.deleter_level >= level) {
      row.deleter = kNone;
      row.is_only_locked = false;
    }
  p.phase = level == 0 ? Phase::aborted : Phase::subaborted;
  p.callbacks_done = 0;
}

// --- The real code, and what leaves a rule out of it

std::optional<Tag> World::put_tag(Touch& touch, const Turn& turn, bool is_trying) {
  Tag put_before = touch.put;
  if (without(Rule::laneless_is_monotonic)) common_.laneless = kBeforeAll;
  if (without(Rule::group_keeps_last)) std::ranges::fill(groups_, Group{});
  Lane* lane = lane_of(touch.key);
  Lane before = lane != nullptr ? *lane : Lane{};
  Group* group = group_of(touch, turn.group);
  Tag last = group != nullptr ? group->last : before.overflow;
  Given* given = touch.given_to(turn.group);
  Given given_before = given != nullptr ? *given : Given{};
  if (lane != nullptr && without(Rule::overflow_goes_last)) lane->highest = lane->vtime;
  std::optional<Tag> put = is_trying ? table_.try_put(touch, turn) : table_.put(touch, turn);
  if (!put) {
    if (lane != nullptr) lane->highest = before.highest;
    return put;
  }
  Tag tag = *put;
  if (without(Rule::put_is_minimum)) touch.put = put_before == kNoTag ? tag : put_before;
  if (without(Rule::put_is_minimum) && chance(50)) touch.put = tag;
  if (lane != nullptr && without(Rule::overflow_goes_last))
    lane->highest = std::max(before.highest, tag);
  if (lane != nullptr && without(Rule::overflow_is_remembered)) lane->overflow = before.overflow;
  if (lane != nullptr && without(Rule::highest_at_tag)) lane->highest = before.highest;
  if (without(Rule::gives_back_own_turns) && given_before.after != kNoTag)
    given->before = given_before.before;
  if (without(Rule::gives_back_above_start) && given != nullptr && given_before.after != last)
    given->before = last;
  if (without(Rule::laneless_attaches) && touch.is_laneless && touch.is_attached) {
    touch.is_attached = false;
    --lane->open;
  }
  return tag;
}

std::optional<ClaimStart> World::begin_claim(Touch& touch) {
  Lane* lane = lane_of(touch.key);
  if (lane != nullptr && is_read_up(*lane)) return std::nullopt;
  std::optional<ClaimStart> start = table_.begin_claim(touch);
  if (start && without(Rule::take_is_provisional)) start->taking.end(kNoTag);
  if (without(Rule::laneless_attaches) && touch.is_laneless && touch.is_attached) {
    touch.is_attached = false;
    --lane_of(touch.key)->open;
  }
  return start;
}

// The parts are in visiting order.
void World::end_scans(std::vector<Part>& parts, bool is_full) {
  std::vector<Scan> scans;
  for (const Part& part : parts) scans.push_back(part.scan);
  set_ends(scans, is_full);
  if (is_full && without(Rule::unread_lane_stays))
    for (Scan& scan : scans) scan.is_to_end |= !scan.took();
  if (is_full && without(Rule::bound_by_highest_taken))
    for (Scan& scan : scans) scan.is_to_end |= scan.took();
  if (is_full && without(Rule::last_lane_is_last_visited)) {
    auto first = std::ranges::find_if(scans, [](const Scan& scan) { return scan.took(); });
    for (Scan& scan : scans) scan.is_to_end = scan.took() && &scan != &*first;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].scan = scans[i];
}

void World::end_claim(Part& part) {
  Scan scan = part.scan;
  Reading& reading = part.start.reading;
  Lane* lane = lane_of(part.key);
  if (lane != nullptr) {
    if (without(Rule::bound_by_vtime)) reading.vtime = kNoTag - 1;
    if (without(Rule::bound_by_vtime_plus_one)) ++reading.vtime;
    if (without(Rule::bound_by_vtime_as_read)) reading.vtime = std::max(lane->vtime, scan.highest);
    if (without(Rule::bound_by_ring)) reading.lowerings = lane->lowerings;
    if (without(Rule::ring_forgets) && lane->lowerings > Lane::kRing)
      reading.lowerings = std::max(reading.lowerings, lane->lowerings - Lane::kRing);
    if ((without(Rule::same_generation) || without(Rule::reuse_and_generation)) &&
        reading.generation != 0)
      reading.generation = lane->generation;
    if (without(Rule::laneless_moves_nothing) && reading.generation == 0)
      reading = {.cursor = kBeforeAll,
                 .vtime = lane->vtime,
                 .lowerings = lane->lowerings,
                 .generation = lane->generation};
  }
  if (without(Rule::highest_not_plus_one) && !scan.is_to_end && scan.took()) {
    scan.is_to_end = true;
    scan.left = std::min(scan.left, scan.highest + 1);
  }
  if (without(Rule::bound_by_row_left)) scan.left = kNoTag;
  if (without(Rule::repeatable_read_stays)) scan.is_current = true;
  table_.end_claim(*part.touch, part.start, scan);
  if (without(Rule::take_is_minimum) && scan.took()) part.touch->take = scan.lowest;
}

void World::end_commit(Process& p, Touch& touch) {
  Lane* lane = lane_of(touch.key);
  bool is_out = lane == nullptr
                    ? without(Rule::doubt_at_commit)
                    : without(Rule::lower_at_commit) ||
                          (without(Rule::lower_unconditionally) && touch.put >= lane->cursor) ||
                          (touch.is_laneless && without(Rule::laneless_lowers));
  note(p, "commit's callback: put, vtime", touch.key, touch.put,
       lane != nullptr ? lane->vtime : kNone);
  if (is_out) touch.put = kNoTag;
  if (without(Rule::prepare_is_refused) && chance(30)) touch.put = kNoTag;
  Tag highest = lane != nullptr ? lane->highest : kBeforeAll;
  table_.commit(touch);
  if (lane != nullptr && without(Rule::lower_raises_highest)) lane->highest = highest;
}

void World::end_abort(Process& p, Touch& touch) {
  Lane* lane = lane_of(touch.key);
  note(p, "abort's callback: take", touch.key, touch.take);
  bool is_out = lane == nullptr
                    ? without(Rule::doubt_at_abort)
                    : without(Rule::lower_at_abort) ||
                          (without(Rule::lower_unconditionally) && touch.take >= lane->cursor);
  if (is_out) touch.take = kNoTag;
  Tag highest = lane != nullptr ? lane->highest : kBeforeAll;
  if (without(Rule::lower_after_abort_is_visible)) touch.given.clear();
  for (const Given& given : touch.given) {
    Group* group = touch.is_attached ? group_of(touch, given.group) : nullptr;
    if (group == nullptr || given.after == kNoTag) continue;
    if (without(Rule::gives_back_own_last)) group->last = given.after;
    if (group->last == given.after && given.after > lane->vtime)
      note(p, "gives turns back: before, after", touch.key, given.before, given.after);
  }
  table_.abort(touch);
  if (lane != nullptr && without(Rule::lower_raises_highest)) lane->highest = highest;
}

void World::end_subabort(Process& p, Touch& touch) {
  note(p, "subabort's callback: take", touch.key, touch.take);
  if (!without(Rule::lower_at_subabort)) table_.abort_subtransaction(touch);
}

// What an abort does, and nothing else of it.
void World::give_back(const Touch& touch) {
  for (const Given& given : touch.given) {
    Group* group = touch.is_attached ? group_of(touch, given.group) : nullptr;
    if (group != nullptr && group->last == given.after) group->last = given.before;
  }
}

// The rows are visible, or gone.
void World::end_copy(Process& p) {
  std::uint32_t database = std::exchange(p.copied, 0);
  if (database == 0) return;
  if (p.phase != Phase::aborted) {
    std::vector<LaneSlot> before = slots_;
    std::vector<KnownQueue> known = queues_;
    table_.copied(database);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (without(Rule::copy_lowers)) {
        slots_[i].lane = before[i].lane;
        slots_[i].lane.is_foreign |= slots_[i].key.queue.database == database;
      }
      if (without(Rule::copy_reaches_builders) && slots_[i].state == LaneSlot::State::building)
        slots_[i].lane.is_foreign = before[i].lane.is_foreign;
    }
    if (without(Rule::copy_doubts)) queues_ = known;
  }
  table_.end_copy();
  note(p, "copy's callback");
}

void World::forget() {
  auto database = static_cast<std::uint32_t>(pick(1, setting_.databases));
  if (without(Rule::forget_keeps_used))
    for (std::uint32_t at = 0; at < slots_.size(); ++at)
      if (slots_[at].state == LaneSlot::State::open && slots_[at].key.queue.database == database) {
        slots_[at].lane.open = 0;
        detach_all(at);
      }
  table_.forget(database);
  note(*processes_.front(), "forget", {}, database);
}

void World::detach_all(std::uint32_t at) {
  for (auto& process : processes_)
    for (Touch& touch : process->touches)
      if (touch.is_attached && touch.lane == at) touch.is_attached = false;
}

std::optional<std::uint32_t> World::reserve(const Touch& touch) {
  bool in_use = without(Rule::reuse_when_unused) || without(Rule::reuse_and_generation);
  std::vector<LaneSlot> before = slots_;
  std::vector<KnownQueue> known = queues_;
  Tag laneless = common_.laneless;
  if (in_use)
    for (LaneSlot& slot : slots_) slot.lane.open = 0;
  Touch builder = touch;
  if (without(Rule::builder_has_taken_nothing)) builder.take = kNoTag;
  std::optional<std::uint32_t> at = table_.reserve(builder);
  if (without(Rule::reuse_raises_laneless)) common_.laneless = laneless;
  if (without(Rule::doubt_at_reuse)) queues_ = known;
  if (at && without(Rule::known_if_none_was_open)) slots_[*at].may_miss_puts = false;
  if (!in_use) return at;
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    if (i != at) slots_[i].lane.open = before[i].lane.open;
  if (at) detach_all(*at);
  return at;
}

bool World::end_check(const LaneKey& key, Reading reading, Tag found) {
  Lane* lane = lane_of(key);
  if (lane == nullptr) return table_.end_check(key, reading, found);
  if (without(Rule::check_lowerings)) reading.lowerings = lane->lowerings;
  if (without(Rule::check_generation)) reading.generation = lane->generation;
  std::int32_t open = lane->open;
  std::int32_t laneless_open = common_.laneless_open;
  if (without(Rule::check_open)) lane->open = 0;
  if (without(Rule::check_laneless)) common_.laneless_open = 0;
  std::int32_t copies_open = common_.copies_open;
  if (without(Rule::check_copies)) common_.copies_open = 0;
  bool is_fault = table_.end_check(key, reading, found);
  lane->open = open;
  common_.laneless_open = laneless_open;
  common_.copies_open = copies_open;
  return is_fault;
}

// --- What a transaction does

Script World::live(Process& p) {
  for (;;) {
    p.phase = Phase::idle;
    p.is_parked = true;
    co_await callback(p);
    p.is_parked = false;
    p.phase = Phase::open;
    p.is_repeatable_read = chance(15);
    p.snapshot = snapshots_;
    note(p, p.is_repeatable_read ? "begin, repeatable read" : "begin");
    bool is_failed = false;
    try {
      co_await work(p);
    } catch (const Failure&) {
      is_failed = true;
    }
    if (is_failed || chance(setting_.aborts))
      co_await abort(p);
    else
      co_await commit(p);
  }
}

Script World::work(Process& p) {
  for (std::int64_t left = pick(1, 3); left > 0; --left) {
    if (!chance(25)) {
      co_await act(p);
      continue;
    }
    p.level = 1;
    bool is_failed = false;
    try {
      co_await act(p);
      co_await step(p);
      note(p, "end of savepoint");
    } catch (const Failure&) {
      is_failed = true;
    }
    if (is_failed || chance(40)) {
      co_await rollback_to_savepoint(p);
      continue;
    }
    p.level = 0;
    for (Row& row : rows_) {
      if (row.creator == p.id) row.creator_level = 0;
      if (row.deleter == p.id) row.deleter_level = 0;
    }
  }
}

Script World::act(Process& p) {
  if (now_ < lull_until_)
    co_await cancel(p, false);
  else if (chance(setting_.copies))
    co_await copy(p);
  else if (chance(setting_.learns))
    co_await learn(p);
  else if (chance(setting_.claims))
    co_await claim(p);
  else if (chance(65))
    co_await enqueue(p);
  else if (chance(80))
    co_await cancel(p, chance(50));
  else
    co_await purge(p);
}

Script World::enqueue(Process& p) {
  for (std::int64_t left = pick(1, 3); left > 0 && live_rows() < setting_.most_rows; --left)
    co_await put(
        p, pick_key(),
        static_cast<std::uint64_t>(pick(1, static_cast<std::int64_t>(setting_.group_keys))));
}

Script World::put(Process& p, LaneKey key, std::uint64_t group) {
  Touch& touch = p.touches.of(key);
  if (chance(90)) touch.expect(group);
  Turn turn = {.group = group, .stride = Tag{1} << (group % 3), .clock = 0};
  std::optional<Tag> tag;
  Row row = {.key = key, .group = group, .creator = p.id, .creator_level = p.level};
  bool is_trying = chance(setting_.builds);
  while (!tag) {
    co_await step(p);
    turn.clock = clock_;
    row.is_laneless = table_.find(key) == nullptr;
    tag = put_tag(touch, turn, is_trying);
    if (!tag) co_await provide_lane(p, key);
    is_trying = false;
  }
  row.id = ++job_ids_;
  row.tag = *tag;
  note(p, "put: tag, group", key, row.tag, static_cast<std::int64_t>(group));
  check_group_order(row);
  rows_.push_back(row);
  co_await step(p);
  note(p, "insert", key, row.tag);
  for (Row& inserted : rows_)
    if (inserted.id == row.id) inserted.is_inserted = true;
}

// Into one database, at tags that nobody has given.
Script World::copy(Process& p) {
  LaneKey key = pick_key();
  if (p.copied != 0 && p.copied != key.queue.database) co_return;
  co_await step(p);
  if (std::exchange(p.copied, key.queue.database) == 0) table_.begin_copy();
  note(p, "copy begins", key);
  for (std::int64_t left = pick(1, 3); left > 0 && live_rows() < setting_.most_rows; --left) {
    co_await step(p);
    std::int64_t group = pick(1, static_cast<std::int64_t>(setting_.group_keys));
    rows_.push_back({.id = ++job_ids_,
                     .key = key,
                     .group = static_cast<std::uint64_t>(group),
                     .tag = pick(1, clock_ + (chance(20) ? 500 : 20)),
                     .is_foreign = true,
                     .is_inserted = true,
                     .creator = p.id,
                     .creator_level = p.level});
    note(p, "copies: tag, group", key, rows_.back().tag, group);
  }
}

// What a builder left out, in two pieces; not by a transaction whose snapshots do not show all.
Script World::learn(Process& p) {
  LaneKey key = pick_key();
  Touch& touch = p.touches.of(key);
  co_await step(p);
  const Lane* lane = table_.find(key);
  if (lane == nullptr || !lane->is_partly_known() || touch.take != kNoTag) co_return;
  std::uint64_t generation = lane->generation;
  Tag start = lane->start;
  Tag middle = pick(kBeforeAll, start);
  bool has_all = !without(Rule::learns_every_piece);
  if (has_all || chance(50)) co_await learn_piece(p, touch, generation, kBeforeAll, middle);
  if (has_all || chance(50)) co_await learn_piece(p, touch, generation, middle + 1, start);
  co_await step(p);
  table_.know_all(key, generation);
  if (Lane* lane = lane_of(key))
    if (without(Rule::learns_no_more) && lane->generation == generation) lane->start = kBeforeAll;
  note(p, "knows all", key);
}

Script World::learn_piece(Process& p, Touch& touch, std::uint64_t generation, Tag from, Tag to) {
  co_await step(p);
  std::vector<Row> shown;
  for (const Row& row : rows_)
    if (row.key == touch.key && row.tag >= from && row.tag <= to && is_visible(row, p, snapshots_))
      shown.push_back(row);
  note(p, "reads a piece: from, to", touch.key, from, to);
  for (const Row& row : shown) {
    co_await step(p);
    table_.learn(touch.key, generation, row.group, row.tag);
  }
}

Script World::claim(Process& p) {
  std::vector<LaneKey> keys;
  QueueName queue = pick_key().queue;
  co_await find_lanes(p, queue, keys);
  co_await claim_from(p, std::move(keys), static_cast<std::size_t>(chance(20) ? 100 : pick(1, 3)));
}

// The lanes of a queue, in the order of their priorities.
Script World::find_lanes(Process& p, QueueName queue, std::vector<LaneKey>& keys) {
  co_await step(p);
  std::vector<LaneKey> foreign;
  bool is_complete = table_.visit(queue, [&](std::int32_t priority, const Lane& lane) {
    keys.push_back({.queue = queue, .priority = priority});
    if (lane.is_to_be_rebuilt() && chance(setting_.builds)) foreign.push_back(keys.back());
  });
  note(p, is_complete ? "lanes are complete" : "lanes are not complete");
  for (const LaneKey& key : foreign) co_await provide_lane(p, key);
  if (!is_complete) co_await survey(p, queue, keys);
  std::ranges::sort(keys, {}, &LaneKey::priority);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

// A snapshot that is newer than the beginning, also in REPEATABLE READ.
Script World::survey(Process& p, QueueName queue, std::vector<LaneKey>& keys) {
  std::uint64_t doubted = 0;
  if (!without(Rule::survey_before_snapshot)) {
    co_await step(p);
    doubted = table_.begin_survey(queue);
    note(p, "begin survey", {}, static_cast<std::int64_t>(doubted));
  }
  co_await step(p);
  note(p, "survey");
  std::vector<LaneKey> found;
  for (const Row& row : rows_)
    if (row.key.queue == queue && is_visible(row, p, snapshots_)) found.push_back(row.key);
  if (without(Rule::survey_before_snapshot)) {
    co_await step(p);
    doubted = table_.begin_survey(queue);
  }
  for (const LaneKey& key : found)
    if (lane_of(key) == nullptr || chance(setting_.builds)) co_await provide_lane(p, key);
  keys.insert(keys.end(), found.begin(), found.end());
  co_await step(p);
  bool has_all =
      std::ranges::all_of(found, [&](const LaneKey& key) { return lane_of(key) != nullptr; });
  if (has_all) table_.end_survey(queue, doubted);
  note(p, "end survey", {}, has_all);
}

Script World::claim_from(Process& p, std::vector<LaneKey> keys, std::size_t most) {
  std::uint64_t early = take_snapshot(p);
  std::vector<Part> parts;
  for (const LaneKey& key : keys) {
    Touch& touch = p.touches.of(key);
    co_await step(p);
    std::optional<ClaimStart> start = begin_claim(touch);
    note(p, "claim reads: cursor, vtime", key, start ? start->reading.cursor : kNone,
         start ? static_cast<std::int64_t>(start->reading.vtime) : kNone);
    if (start) parts.push_back({.key = key, .touch = &touch, .start = *start, .scan = {}});
  }
  if (without(Rule::read_in_one_step) && !parts.empty()) {
    co_await step(p);
    for (Part& part : parts)
      if (Lane* lane = lane_of(part.key)) part.start.reading.lowerings = lane->lowerings;
  }
  co_await step(p);
  std::uint64_t snapshot = without(Rule::read_before_snapshot) ? early : take_snapshot(p);
  note(p, "claim's snapshot", {}, static_cast<std::int64_t>(snapshot));
  std::size_t wanted = most;
  for (Part& part : parts) {
    part.scan.is_current = !p.is_repeatable_read;
    if (wanted > 0) co_await scan_lane(p, part, snapshot, wanted);
  }
  end_scans(parts, wanted == 0);
  if (chance(setting_.lulls)) {
    sleep(p);
    lull_until_ = p.asleep_until;
  }
  for (Part& part : parts) {
    co_await step(p);
    end_claim(part);
    note(p, "claim ends: highest, cursor", part.key, part.scan.highest,
         lane_of(part.key) != nullptr ? lane_of(part.key)->cursor : kNone);
  }
}

Script World::scan_lane(Process& p, Part& part, std::uint64_t snapshot, std::size_t& wanted) {
  Tag tag = part.start.reading.cursor - 1;
  std::int64_t id = job_ids_;
  bool is_draining = is_resting_;
  while (wanted > 0) {
    Row* row = next_row(p, part.key, tag, id, snapshot);
    if (row == nullptr) co_return;
    tag = row->tag;
    id = row->id;
    if (!row->is_live() && p.is_repeatable_read) {
      note(p, "claim cannot serialize", part.key, tag);
      throw Failure();
    }
    if (row->deleter != kNone || !row->is_live()) {
      note(p, "claim skips a locked row", part.key, tag);
    } else if (!is_draining && chance(3)) {
      part.scan.left = std::min(part.scan.left, tag);
      note(p, "claim leaves a free row", part.key, tag);
    } else if (without(Rule::locked_row_is_deleted) && !is_draining && chance(20)) {
      row->deleter = p.id;
      row->deleter_level = p.level;
      row->is_only_locked = true;
      note(p, "claim locks and leaves", part.key, tag);
    } else {
      row->deleter = p.id;
      row->deleter_level = p.level;
      part.scan.lowest = std::min(part.scan.lowest, tag);
      part.scan.highest = std::max(part.scan.highest, tag);
      --wanted;
      note(p, "claim takes", part.key, tag);
    }
    if (chance(70)) co_await step(p);
  }
}

Script World::cancel(Process& p, bool is_rescheduled) {
  LaneKey key = pick_key();
  Touch& touch = p.touches.of(key);
  co_await step(p);
  Taking taking = table_.take(touch, kBeforeAll);
  if (without(Rule::other_takes_are_noted) || without(Rule::other_takes_are_noted_first))
    taking.end(kNoTag);
  note(p, "cancel begins", key);
  co_await step(p);
  Row* row = any_row(p, key);
  Tag tag = row != nullptr ? row->tag : kNoTag;
  std::uint64_t group = row != nullptr ? row->group : 0;
  note(p, "cancel takes", key, tag);
  if (row != nullptr) {
    row->deleter = p.id;
    row->deleter_level = p.level;
  }
  if (without(Rule::other_takes_are_noted_first)) co_await step(p);
  if (!without(Rule::other_takes_are_noted)) taking.end(tag);
  if (group == 0 || !is_rescheduled) co_return;
  if (!without(Rule::row_is_never_updated)) {
    co_await put(p, key, group);
    co_return;
  }
  rows_.push_back({.id = ++job_ids_,
                   .key = key,
                   .group = group,
                   .tag = tag,
                   .is_inserted = true,
                   .creator = p.id,
                   .creator_level = p.level});
}

Script World::purge(Process& p) {
  LaneKey key = pick_key();
  Touch& touch = p.touches.of(key);
  co_await step(p);
  Taking taking = table_.take(touch, kBeforeAll);
  if (without(Rule::other_takes_are_noted)) taking.end(kNoTag);
  note(p, "purge begins", key);
  co_await step(p);
  Tag lowest = kNoTag;
  for (Row& row : rows_) {
    if (row.key != key || row.deleter != kNone || !is_visible(row, p, snapshots_)) continue;
    row.deleter = p.id;
    row.deleter_level = p.level;
    lowest = std::min(lowest, row.tag);
    touch.purged = std::max(touch.purged, row.tag);
  }
  note(p, "purge takes from", key, lowest);
  if (!without(Rule::other_takes_are_noted)) taking.end(lowest);
}

Script World::provide_lane(Process& p, LaneKey key) {
  const Lane* lane = table_.find(key);
  if (lane != nullptr && !lane->is_to_be_rebuilt()) co_return;
  Touch& touch = p.touches.of(key);
  co_await step(p);
  bool is_rebuilt = table_.find(key) != nullptr;
  std::optional<std::uint32_t> at = reserve(touch);
  note(p,
       at ? is_rebuilt ? "reserves a foreign lane" : "reserves a lane"
          : "finds no place for a lane",
       key);
  if (!at) co_return;
  bool is_failed = false;
  try {
    co_await build(p, key, *at);
  } catch (const Failure&) {
    is_failed = true;
  }
  if (!is_failed) co_return;
  co_await callback(p);
  if (!without(Rule::builder_gives_back)) table_.give_back(*at);
  note(p, "gives the lane back", key);
  throw Failure();
}

// A snapshot that is newer than the reservation, also in REPEATABLE READ.
Script World::build(Process& p, LaneKey key, std::uint32_t at) {
  co_await step(p);
  std::uint64_t snapshot = without(Rule::builder_snapshot_after_reserve) ? p.snapshot : snapshots_;
  note(p, "builder's snapshot", key, static_cast<std::int64_t>(snapshot));
  bool may_miss_puts = slots_[at].may_miss_puts;
  std::vector<Row> shown;
  Backlog backlog = {.is_partly = chance(setting_.partly)};
  for (const Row& row : rows_) {
    if (row.key != key || !is_visible(row, p, snapshot)) continue;
    shown.push_back(row);
    backlog.lowest = std::min(backlog.lowest, row.tag);
    backlog.highest = std::max(backlog.highest, row.tag);
  }
  for (const Row& row : shown) {
    co_await step(p);
    note(p, "remembers a group: tag, group", key, row.tag, static_cast<std::int64_t>(row.group));
    bool is_left_out = without(Rule::install_groups) || (backlog.is_partly && chance(70));
    if (!is_left_out) table_.remember(at, row.group, row.tag);
  }
  co_await step(p);
  if (without(Rule::known_if_none_has_put)) slots_[at].may_miss_puts = may_miss_puts;
  table_.install(at, backlog, clock_);
  Lane& lane = slots_[at].lane;
  if (without(Rule::partly_goes_behind)) lane.start = lane.known_start;
  if (without(Rule::install_highest)) slots_[at].lane.highest = kBeforeAll;
  if (without(Rule::install_start)) slots_[at].lane.start = kBeforeAll;
  note(p, "installs: lowest, highest", key, backlog.lowest, slots_[at].lane.highest);
}

Script World::commit(Process& p) {
  if (without(Rule::copy_lowers_after_commit_is_visible)) {
    co_await callback(p);
    end_copy(p);
  }
  bool is_early = without(Rule::lower_after_commit_is_visible);
  if (!is_early) {
    co_await callback(p);
    make_commit_visible(p);
    note(p, "commit is visible");
  }
  for (Touch& touch : p.touches) {
    co_await callback(p);
    end_commit(p, touch);
  }
  co_await callback(p);
  end_copy(p);
  if (is_early) {
    co_await callback(p);
    make_commit_visible(p);
    note(p, "commit is visible");
  }
  p.touches.clear();
}

Script World::abort(Process& p) {
  p.level = 0;
  if (without(Rule::gives_back_after_abort_is_visible))
    for (Touch& touch : p.touches) give_back(touch);
  bool is_early = without(Rule::lower_after_abort_is_visible);
  if (!is_early) {
    co_await callback(p);
    make_abort_visible(p, 0);
    note(p, "abort is visible");
  }
  for (Touch& touch : p.touches) {
    co_await callback(p);
    end_abort(p, touch);
  }
  co_await callback(p);
  end_copy(p);
  if (is_early) {
    co_await callback(p);
    make_abort_visible(p, 0);
    note(p, "abort is visible");
  }
  p.touches.clear();
}

Script World::rollback_to_savepoint(Process& p) {
  co_await callback(p);
  make_abort_visible(p, 1);
  note(p, "subabort is visible");
  for (Touch& touch : p.touches) {
    co_await callback(p);
    end_subabort(p, touch);
    ++p.callbacks_done;
  }
  p.level = 0;
  p.phase = Phase::open;
}

// The manager's second look at a lane or a piece of it: at rows that the snapshot shows and that
// nobody holds.
Script World::manage(Process& p) {
  for (;;) {
    p.phase = Phase::idle;
    p.is_parked = true;
    co_await callback(p);
    p.is_parked = false;
    p.phase = Phase::open;
    LaneKey key = pick_key();
    p.snapshot = snapshots_;
    if (without(Rule::check_before_snapshot)) co_await callback(p);
    Reading reading = table_.begin_check(key);
    note(p, "check reads: cursor, lowerings", key, reading.cursor,
         static_cast<std::int64_t>(reading.lowerings));
    co_await callback(p);
    if (!without(Rule::check_before_snapshot)) p.snapshot = snapshots_;
    note(p, "check's snapshot", key, static_cast<std::int64_t>(p.snapshot));
    co_await callback(p);
    Tag found = kNoTag;
    Tag from = chance(50) ? pick(kBeforeAll, clock_) : kBeforeAll;
    Tag to = chance(50) ? pick(from, clock_) : kNoTag;
    for (const Row& row : rows_)
      if (row.key == key && row.tag >= from && row.tag < to && is_visible(row, p, p.snapshot) &&
          ((row.deleter == kNone && row.is_live()) || without(Rule::check_free_rows)))
        found = std::min(found, row.tag);
    note(p, "check finds", key, found);
    co_await callback(p);
    bool is_fault = end_check(key, reading, found);
    note(p, "check ends", key, found, is_fault);
    if (is_fault) fail("the check of a lane gives a false alarm");
  }
}

// Claims alone take every row.
Script World::drain(Process& p) {
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t i = 0; i < setting_.queues * setting_.databases; ++i) {
      p.phase = Phase::open;
      p.is_repeatable_read = false;
      std::vector<LaneKey> keys;
      QueueName queue = {.database = static_cast<std::uint32_t>(i / setting_.queues + 1),
                         .queue_id = i % setting_.queues + 1};
      co_await find_lanes(p, queue, keys);
      co_await claim_from(p, std::move(keys), 100);
      co_await commit(p);
    }
  }
  is_drained_ = true;
  co_await callback(p);
}

// --- What must hold

// Whether the callback that is to come lowers that far.
bool World::will_lower(Phase phase, const Touch& touch, const Row& row) const {
  const Lane* lane = table_.find(row.key);
  Tag tag = phase == Phase::committed ? touch.put : touch.take;
  if (touch.key != row.key || tag > row.tag) return false;
  if (lane == nullptr) return true;
  if (phase == Phase::committed && tag > lane->vtime) return false;
  return row.tag <= lane->highest || lane->is_foreign || tag == row.tag;
}

bool World::is_covered(const Row& row) const {
  for (const auto& p : processes_) {
    if (p->phase == Phase::idle || p->phase == Phase::open) continue;
    if (p->phase == Phase::committed && p->copied == row.key.queue.database) return true;
    std::size_t done = p->phase == Phase::subaborted ? p->callbacks_done : 0;
    for (const Touch& touch : p->touches)
      if (done > 0)
        --done;
      else if (will_lower(p->phase, touch, row))
        return true;
  }
  return false;
}

void World::check() {
  for (const Row& row : rows_) {
    if (row.creator != kNone || row.deleter != kNone || !row.is_live()) continue;
    const Lane* lane = table_.find(row.key);
    bool is_complete = table_.visit(row.key.queue, [](std::int32_t, const Lane&) {});
    bool is_found = !is_complete;
    if (lane != nullptr)
      is_found = lane->cursor <= row.tag && !is_read_up(*lane) &&
                 (row.tag <= lane->highest || lane->is_foreign);
    if (!is_found && !is_covered(row))
      fail("row " + std::to_string(row.id) + ", tag " + std::to_string(row.tag) + ", is lost");
  }
  // Not a harm by itself.
  if (without(Rule::bound_by_vtime) || without(Rule::bound_by_vtime_plus_one)) return;
  for (const LaneSlot& slot : slots_)
    if (slot.state == LaneSlot::State::open && slot.lane.cursor > slot.lane.vtime + 1)
      fail("a cursor is above vtime + 1");
}

// Of one lane and group, rows in the order of their tags; without a lane, of one tag in that of
// their ids.
void World::check_group_order(const Row& row) {
  for (const Row& before : rows_) {
    if (before.key != row.key || before.group != row.group || !before.is_live()) continue;
    if (before.is_foreign) continue;
    if (before.tag > row.tag || (before.tag == row.tag && !row.is_laneless))
      fail("tag " + std::to_string(row.tag) + " comes behind " + std::to_string(before.tag) +
           " in group " + std::to_string(row.group));
  }
}

void World::check_quiet() {
  if (live_rows() > 0) fail("claims alone leave a row");
  if (common_.laneless_open != 0) fail("a transaction without a lane is not counted off");
  if (common_.copies_open != 0) fail("a transaction that copies is not counted off");
  check_chains();
  for (const LaneSlot& slot : slots_) {
    if (slot.state == LaneSlot::State::free) continue;
    if (slot.state == LaneSlot::State::building) fail("a builder is gone");
    if (slot.lane.open != 0) fail("a transaction is not counted off");
    if (slot.lane.cursor <= slot.lane.vtime && slot.lane.cursor <= slot.lane.highest)
      fail("a cursor stays behind rows that are gone");
  }
}

// Each slot is either in its queue's bucket or among the free ones, and once only.
void World::check_chains() {
  std::vector<int> links(slots_.size());
  for (std::uint32_t link : buckets_)
    for (; link != 0; link = slots_[link - 1].next)
      links[link - 1] += slots_[link - 1].state == LaneSlot::State::free ? 2 : 1;
  for (std::uint32_t link = common_.free_lane; link != 0; link = slots_[link - 1].next)
    links[link - 1] += slots_[link - 1].state == LaneSlot::State::free ? 1 : 2;
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (links[i] != (i < common_.used_lanes ? 1 : 0)) fail("a slot is not where it belongs");
}

// --- Time

void World::start_all() {
  events_.assign(kEventsKept, {});
  for (std::size_t i = 0; i < setting_.processes; ++i) {
    processes_.push_back(std::make_unique<Process>());
    Process& p = *processes_.back();
    p.id = static_cast<int>(i) + 1;
    p.script = i == 0 ? manage(p) : live(p);
    p.at = p.script.handle();
    p.at.resume();
  }
}

// Shared memory is lost, and all processes; the table is kept.
void World::restart() {
  note(*processes_.front(), "restart");
  for (auto& p : processes_) {
    make_abort_visible(*p, 0);
    p->script = Script();
  }
  processes_.clear();
  common_ = {};
  std::ranges::fill(slots_, LaneSlot{});
  std::ranges::fill(buckets_, 0U);
  std::ranges::fill(queues_, KnownQueue{});
  std::ranges::fill(groups_, Group{});
  for (const Row& row : rows_) clock_ = std::max(clock_, row.tag + 1);
  start_all();
}

void World::tick() {
  if (chance(setting_.clock_forward)) clock_ += pick(1, 2);
  if (setting_.clock_back > 0 && pick(1, 1000) <= setting_.clock_back)
    clock_ = std::max<Tag>(1, clock_ - pick(1, setting_.furthest_back));
}

void World::sleep(Process& p) {
  p.asleep_until = now_ + static_cast<std::uint64_t>(pick(1, setting_.longest_sleep));
}

// At the end of an era nobody begins any more; then what is there is drained. Whether it is over.
bool World::rest() {
  for (auto& p : processes_)
    if (!p->is_parked) return false;
  Process& p = *processes_.back();
  p.is_failing = false;
  Script script = drain(p);
  is_drained_ = false;
  p.at = script.handle();
  while (!is_drained_ && fault_.empty()) {
    ++steps_;
    p.at.resume();
    check();
  }
  if (fault_.empty()) check_quiet();
  p.at = p.script.handle();
  return true;
}

void World::run(std::uint64_t steps) {
  std::uint64_t end = steps_ + steps;
  std::uint64_t rest_at = steps_ + kStepsOfOneEra;
  while (steps_ < end && fault_.empty()) {
    ++now_;
    tick();
    if (setting_.restarts > 0 && pick(1, 100000) <= setting_.restarts) restart();
    if (setting_.forgets > 0 && pick(1, 100000) <= setting_.forgets) forget();
    is_resting_ = steps_ > rest_at;
    if (is_resting_ && rest()) {
      rest_at = steps_ + kStepsOfOneEra;
      continue;
    }
    Process& p = *processes_[static_cast<std::size_t>(
        pick(0, static_cast<std::int64_t>(processes_.size()) - 1))];
    if (is_resting_ ? p.is_parked : p.asleep_until > now_) continue;
    if (!is_resting_ && chance(setting_.sleeps)) sleep(p);
    p.is_failing = pick(1, 1000) <= setting_.failures;
    ++steps_;
    p.at.resume();
    check();
  }
}

} // namespace jobq::core::model
