#include "pg/lock.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

LOCKMODE mode_of(LockStrength strength) {
  switch (strength) {
  case LockStrength::shared:
    return AccessShareLock;
  case LockStrength::change:
    return ShareUpdateExclusiveLock;
  case LockStrength::exclusive:
    break;
  }
  return AccessExclusiveLock;
}

} // namespace

void lock_object(Oid relation, std::int64_t id, LockStrength strength) {
  LOCKMODE mode = mode_of(strength);
  auto key = static_cast<std::uint64_t>(id);
  guarded<LockDatabaseObject>(relation, static_cast<Oid>(key), static_cast<uint16>(key >> 32),
                              mode);
}

} // namespace jobq::pg
