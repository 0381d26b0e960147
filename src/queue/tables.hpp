// The columns of the tables that are read and written without SQL, in the order of schema.sql.
#pragma once

#include "pg/table.hpp"

namespace jobq::queue {

#define JOBQ_COLUMN(name) name,
#define JOBQ_COLUMN_NAME(name) #name,

// struct Job { job_id, queue_id, ...; shape }: the columns' numbers, from 0, and their names.
#define JOBQ_TABLE(Type, table, COLUMNS, ...)                                                      \
  struct Type {                                                                                    \
    enum Column : int { COLUMNS(JOBQ_COLUMN) };                                                    \
    static constexpr const char* names[] = {COLUMNS(JOBQ_COLUMN_NAME)};                            \
    static constexpr pg::Shape shape = {table, names __VA_OPT__(, ) __VA_ARGS__};                  \
  }

#define JOBQ_QUEUE_COLUMNS(_)                                                                      \
  _(queue_id)                                                                                      \
  _(name)                                                                                          \
  _(paused)                                                                                        \
  _(max_attempts) _(max_crashes) _(lease) _(retry_base) _(retry_cap) _(keep_completed) _(keep_dead)

#define JOBQ_JOB_COLUMNS(_)                                                                        \
  _(job_id)                                                                                        \
  _(queue_id)                                                                                      \
  _(enqueued_at)                                                                                   \
  _(priority) _(max_attempts) _(max_crashes) _(task) _(group_key) _(job_key) _(payload) _(headers)

#define JOBQ_READY_COLUMNS(_)                                                                      \
  _(queue_id) _(tag) _(job_id) _(attempt) _(tries) _(crashes) _(priority) _(group_key)

#define JOBQ_DELAYED_COLUMNS(_) _(job_id) _(queue_id) _(run_at) _(attempt) _(tries) _(crashes)

#define JOBQ_LEASE_COLUMNS(_)                                                                      \
  _(job_id)                                                                                        \
  _(queue_id)                                                                                      \
  _(claimed_at)                                                                                    \
  _(expires_at) _(length) _(replaced_by) _(attempt) _(tries) _(crashes) _(keyed) _(worker)

#define JOBQ_FINISHED_COLUMNS(_)                                                                   \
  _(job_id)                                                                                        \
  _(queue_id)                                                                                      \
  _(claimed_at)                                                                                    \
  _(ended_at) _(prune_at) _(attempt) _(tries) _(state) _(reason) _(worker) _(result)

#define JOBQ_FAILURE_COLUMNS(_)                                                                    \
  _(job_id) _(attempt) _(kind) _(claimed_at) _(failed_at) _(worker) _(error)

JOBQ_TABLE(QueueTable, "queue", JOBQ_QUEUE_COLUMNS, true);
JOBQ_TABLE(JobTable, "job", JOBQ_JOB_COLUMNS);
JOBQ_TABLE(ReadyTable, "ready", JOBQ_READY_COLUMNS);
JOBQ_TABLE(DelayedTable, "delayed", JOBQ_DELAYED_COLUMNS);
JOBQ_TABLE(LeaseTable, "lease", JOBQ_LEASE_COLUMNS);
JOBQ_TABLE(FinishedTable, "finished", JOBQ_FINISHED_COLUMNS);
JOBQ_TABLE(FailureTable, "failure", JOBQ_FAILURE_COLUMNS);

} // namespace jobq::queue
