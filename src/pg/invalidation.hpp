// Word from other sessions that a table's cached contents are stale, carried by the server's own
// invalidation messages: sent at commit, heard at the next transaction's start and after each lock.
#pragma once

#include "pg/postgres.hpp"

namespace jobq::pg {

// `forget` is called with the relation's OID, or InvalidOid for all; it must not raise or allocate.
// At most a few a process; to be called once for each.
void on_invalidation(void (*forget)(Oid relation));

// Tells this session now and, at commit, all others.
void invalidate(Oid relation);

// The relation on which the trigger that called this function stands; raises if it is no trigger.
Oid trigger_relation(FunctionCallInfo fcinfo);

} // namespace jobq::pg
