#include "pg/snapshot.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

void push(View view) {
  CommandCounterIncrement();
  PushActiveSnapshot(view == View::latest ? GetLatestSnapshot() : GetTransactionSnapshot());
}

void replace(View view) {
  PopActiveSnapshot();
  push(view);
}

} // namespace

FreshSnapshot::FreshSnapshot(View view) : view_(view) { guarded<push>(view); }

FreshSnapshot::~FreshSnapshot() {
  if (orderly_.holds()) PopActiveSnapshot();
}

void FreshSnapshot::renew() { guarded<replace>(view_); }

} // namespace jobq::pg
