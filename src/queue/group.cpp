#include "queue/group.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pg/door.hpp"
#include "pg/extension.hpp"
#include "pg/invalidation.hpp"
#include "pg/statement.hpp"
#include "pg/text.hpp"
#include "pg/transaction.hpp"
#include "queue/bounds.hpp"
#include "queue/queue.hpp"

namespace jobq::queue {

namespace {

constexpr pg::Parameter kQueue{0, "queue"};
constexpr pg::Parameter kGroupKey{1, "group_key"};
constexpr pg::Parameter kWeight{2, "weight"};

constexpr core::Tag kDefaultStride = core::stride_of(kDefaultWeight);

constinit pg::Statement
    set_weight("INSERT INTO jobq.group_weight (queue_id, group_key, weight) VALUES ($1, $2, $3)"
               " ON CONFLICT (queue_id, group_key) DO UPDATE SET weight = $3");

constinit pg::Statement
    unset_weight("DELETE FROM jobq.group_weight WHERE queue_id OPERATOR(pg_catalog.=) $1"
                 " AND group_key OPERATOR(pg_catalog.=) $2");

constinit pg::Statement
    unset_weights("DELETE FROM jobq.group_weight WHERE queue_id OPERATOR(pg_catalog.=) $1");

constinit pg::Statement
    weight_of_group("SELECT weight FROM jobq.group_weight WHERE queue_id OPERATOR(pg_catalog.=) $1"
                    " AND group_key OPERATOR(pg_catalog.=) $2");

constinit pg::Statement weights_of_queue("SELECT group_key, weight FROM jobq.group_weight"
                                         " WHERE queue_id OPERATOR(pg_catalog.=) $1");

constexpr std::size_t kMostCached = 1000;

// The groups of a queue that have a weight; mostly there are none.
using Strides = std::map<std::string, core::Tag, std::less<>>;

// What this session knows. `is_stale` is all that the server's callback may touch.
struct Cache {
  std::unordered_map<std::int64_t, std::optional<Strides>> queues; // nothing: no room for all
  std::size_t groups = 0;

  std::size_t room() const { return kMostCached - groups; }
};

bool is_stale = false;
Oid cached_relation = InvalidOid;

Cache& cache() {
  static auto* cache = new Cache;
  if (is_stale || cache->queues.size() >= kMostCached) {
    *cache = {};
    is_stale = false;
  }
  return *cache;
}

void forget(Oid relation) {
  if (relation == InvalidOid || relation == cached_relation) is_stale = true;
}

std::optional<Strides> read_strides(std::int64_t queue_id, std::size_t most) {
  pg::Rows rows = weights_of_queue.run({pg::int8(queue_id)}, most + 1);
  if (rows.size() > most) return std::nullopt;
  Strides strides;
  for (std::uint64_t row = 0; row < rows.size(); ++row)
    strides.emplace(rows.text(row, 0), core::stride_of(rows.int4(row, 1)));
  return strides;
}

core::Tag read_stride(std::int64_t queue_id, std::string_view key) {
  pg::Rows rows = weight_of_group.run({pg::int8(queue_id), pg::text(key)});
  return rows.empty() ? kDefaultStride : core::stride_of(rows.int4(0, 0));
}

// Null if they are not to be kept: too many, or perhaps older than the last change heard, because
// one came in while they were read or the transaction has but one old snapshot.
const Strides* strides_of(std::int64_t queue_id) {
  Cache& known = cache();
  auto found = known.queues.find(queue_id);
  if (found == known.queues.end()) {
    if (pg::has_one_snapshot()) return nullptr;
    cached_relation = pg::relation("group_weight");
    std::optional<Strides> read = read_strides(queue_id, known.room());
    if (is_stale) return nullptr;
    if (read) known.groups += read->size();
    found = known.queues.emplace(queue_id, std::move(read)).first;
  }
  return found->second ? &*found->second : nullptr;
}

core::Tag stride_of_group(std::int64_t queue_id, std::string_view key) {
  const Strides* strides = strides_of(queue_id);
  if (strides == nullptr) return read_stride(queue_id, key);
  auto stride = strides->find(key);
  return stride == strides->end() ? kDefaultStride : stride->second;
}

Datum set_group(pg::Call& call) {
  std::string_view queue = call.text(kQueue);
  pg::Value group_key = pg::text(check_group_key(call.text(kGroupKey)));
  std::int32_t weight = check_weight(call.int4_or_null(kWeight).value_or(kDefaultWeight));
  pg::Value queue_id = pg::int8(share_queue(queue).queue_id);
  if (weight == kDefaultWeight)
    unset_weight.run({queue_id, group_key});
  else
    set_weight.run({queue_id, group_key, pg::int4(weight)});
  return call.returns_nothing();
}

} // namespace

void watch_weights() { pg::on_invalidation(forget); }

std::uint64_t group_hash(pg::Value group_key) {
  if (group_key.is_null) return 0;
  return std::max<std::uint64_t>(1, pg::hash_of(pg::view_of_text(group_key.datum)));
}

GroupTurn turn_of(std::int64_t queue_id, pg::Value group_key) {
  if (group_key.is_null) return {.hash = 0, .stride = kDefaultStride};
  return {.hash = group_hash(group_key),
          .stride = stride_of_group(queue_id, pg::view_of_text(group_key.datum))};
}

void forget_weights(std::int64_t queue_id) { unset_weights.run({pg::int8(queue_id)}); }

JOBQ_WRITING(jobq_set_group, set_group)

} // namespace jobq::queue
