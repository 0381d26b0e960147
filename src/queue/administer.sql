-- Queues.

CREATE FUNCTION jobq.queue_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_queue_changed';

COMMENT ON FUNCTION jobq.queue_changed() IS
  'trigger: tells all sessions that a queue''s settings or its groups'' weights have changed';

-- For each row, since rows that come by logical replication fire no other triggers.
CREATE TRIGGER queue_changed
AFTER INSERT OR UPDATE OR DELETE ON jobq.queue
FOR EACH ROW EXECUTE FUNCTION jobq.queue_changed();

CREATE TRIGGER queue_truncated
AFTER TRUNCATE ON jobq.queue
FOR EACH STATEMENT EXECUTE FUNCTION jobq.queue_changed();

ALTER TABLE jobq.queue ENABLE ALWAYS TRIGGER queue_changed;
ALTER TABLE jobq.queue ENABLE ALWAYS TRIGGER queue_truncated;

CREATE FUNCTION jobq.create_queue(
  queue text,
  lease interval DEFAULT '60 s',
  max_attempts integer DEFAULT 10,
  max_crashes integer DEFAULT 3,
  retry_base interval DEFAULT '5 s',
  retry_cap interval DEFAULT '1 h',
  keep_completed interval DEFAULT '1 day',
  keep_dead interval DEFAULT '30 days'
) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_create_queue';

COMMENT ON FUNCTION jobq.create_queue IS
  'makes a queue; false if there was one of that name, which stays as it is';

CREATE FUNCTION jobq.alter_queue(
  queue text,
  lease interval DEFAULT NULL,
  max_attempts integer DEFAULT NULL,
  max_crashes integer DEFAULT NULL,
  retry_base interval DEFAULT NULL,
  retry_cap interval DEFAULT NULL,
  keep_completed interval DEFAULT NULL,
  keep_dead interval DEFAULT NULL
) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_alter_queue';

COMMENT ON FUNCTION jobq.alter_queue IS
  'changes a queue''s settings, NULL leaves one; a keep time of 1000 years or more is for ever';

CREATE FUNCTION jobq.drop_queue(queue text, force boolean DEFAULT false) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_drop_queue';

COMMENT ON FUNCTION jobq.drop_queue IS
  'drops a queue and the history of its jobs; refuses with 55006 while jobs are live, unless forced';

CREATE FUNCTION jobq.pause_queue(queue text) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_pause_queue';

COMMENT ON FUNCTION jobq.pause_queue IS
  'nothing is claimed from the queue until resume_queue; leases, retries and promotions go on';

CREATE FUNCTION jobq.resume_queue(queue text) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_resume_queue';

COMMENT ON FUNCTION jobq.resume_queue IS 'ends pause_queue';

CREATE FUNCTION jobq.purge_queue(queue text) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_purge_queue';

COMMENT ON FUNCTION jobq.purge_queue IS
  'removes the ready and delayed jobs of a queue without trace and returns how many';
