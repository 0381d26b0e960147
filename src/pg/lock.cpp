#include "pg/lock.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

void lock_object(Oid relation, std::int64_t id, LockStrength strength) {
  LOCKMODE mode = strength == LockStrength::shared ? AccessShareLock : AccessExclusiveLock;
  auto key = static_cast<std::uint64_t>(id);
  guarded<LockDatabaseObject>(relation, static_cast<Oid>(key), static_cast<uint16>(key >> 32),
                              mode);
}

} // namespace jobq::pg
