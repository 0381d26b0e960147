// Waiting for synchronous standbys without holding anybody up: a process that waits inside its
// commit hears of nothing, and DROP DATABASE of any database waits for it.
#pragma once

#include "pg/postgres.hpp"

namespace jobq::pg {

// Where the last commit of this process ends in the log.
inline XLogRecPtr last_commit() { return XactLastCommitEnd; }

// Whether the standbys that synchronous_commit and synchronous_standby_names ask for have what is
// in the log up to there; yes, if they ask for none.
bool is_confirmed(XLogRecPtr end);

} // namespace jobq::pg
