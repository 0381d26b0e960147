#include "pg/standby.hpp"

#include <optional>

#include "pg/error.hpp"

extern "C" {
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
}

namespace jobq::pg {

namespace {

// What is to be waited for, if anything is.
std::optional<int> wait_mode() {
  switch (synchronous_commit) {
  case SYNCHRONOUS_COMMIT_REMOTE_WRITE:
    return SYNC_REP_WAIT_WRITE;
  case SYNCHRONOUS_COMMIT_REMOTE_FLUSH:
    return SYNC_REP_WAIT_FLUSH;
  case SYNCHRONOUS_COMMIT_REMOTE_APPLY:
    return SYNC_REP_WAIT_APPLY;
  default:
    return std::nullopt;
  }
}

bool are_standbys_named() { return SyncRepStandbyNames != nullptr && *SyncRepStandbyNames != 0; }

bool has_arrived(XLogRecPtr end, int mode) {
  LWLockAcquire(SyncRepLock, LW_SHARED);
  bool has = end <= WalSndCtl->lsn[mode];
  LWLockRelease(SyncRepLock);
  return has;
}

} // namespace

bool is_confirmed(XLogRecPtr end) {
  std::optional<int> mode = wait_mode();
  if (!mode || max_wal_senders == 0 || !are_standbys_named()) return true;
  return guarded<has_arrived>(end, *mode);
}

} // namespace jobq::pg
