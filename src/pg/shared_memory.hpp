// The extension's part of the server's shared memory: made anew at every start and after every
// crash. It holds trivially copyable structs, never a process's pointer, and nothing in it is
// worth more than time: truth is in the tables.
#pragma once

#include <cstddef>

#include "pg/postgres.hpp"

namespace jobq::pg {

// A struct in shared memory. `size` is asked once, when the server knows its limits; `attach` is
// called in the postmaster with the memory, all zero.
struct Segment {
  const char* name;
  std::size_t (*size)();
  void (*attach)(void* memory);
};

// To be called by _PG_init while the server preloads its libraries.
void request_segment(const Segment& segment);

// A lock in shared memory, for a few dozen instructions that raise nothing.
class SharedLock {
 public:
  void init();

 private:
  friend class Locked;
  LWLock lock_;
};

class Locked {
 public:
  explicit Locked(SharedLock& lock) : lock_(&lock.lock_) { LWLockAcquire(lock_, LW_EXCLUSIVE); }
  ~Locked() { LWLockRelease(lock_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  LWLock* lock_;
};

// What this process wrote before, others see before what it reads after.
inline void full_barrier() { pg_memory_barrier(); }

// To be called when a process that uses shared memory ends, however it does; it must not raise.
// The same function is called once, however often it is asked for.
void at_exit(void (*leave)());

} // namespace jobq::pg
