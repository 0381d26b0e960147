#include "pg/snapshot.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

std::uint64_t taken = 0;

void push(View view) {
  CommandCounterIncrement();
  ++taken;
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

std::uint64_t FreshSnapshot::current() { return taken; }

void FreshSnapshot::renew() { guarded<replace>(view_); }

} // namespace jobq::pg
