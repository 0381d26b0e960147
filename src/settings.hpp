// Every setting of jobq: what it is called, its default and its bounds.
#pragma once

namespace jobq::settings {

enum ClaimInTransaction { kWarn, kAllow, kError };

extern int claim_in_transaction; // a ClaimInTransaction
extern bool async_claims;
extern int sweep_grace; // milliseconds
extern bool enabled;
extern int sweep_interval;         // milliseconds
extern int database_scan_interval; // seconds

void define();

} // namespace jobq::settings
