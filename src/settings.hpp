// Every setting of jobq: what it is called, its default and its bounds.
#pragma once

#include "core/duration.hpp"

namespace jobq::settings {

enum ClaimInTransaction { kWarn, kAllow, kError };

extern int claim_in_transaction; // a ClaimInTransaction
extern bool async_claims;
extern int sweep_grace; // milliseconds
extern bool enabled;
extern int sweep_interval;         // milliseconds
extern int database_scan_interval; // seconds
extern int max_lanes;
extern int max_groups;
extern bool reread_lanes; // for tests only
extern int sql_workers;   // a database
extern bool superuser_sql;

// Lengths of time, as everybody counts them.
inline core::Microseconds grace() { return core::Microseconds{sweep_grace} * 1000; }
inline core::Microseconds longest_rest() { return core::Microseconds{sweep_interval} * 1000; }

void define();

} // namespace jobq::settings
