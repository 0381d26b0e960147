-- Waiting.

CREATE PROCEDURE jobq.wait(
  queue text DEFAULT 'default',
  "timeout" interval DEFAULT '30 s',
  INOUT ready boolean DEFAULT NULL
)
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_wait';

COMMENT ON PROCEDURE jobq.wait IS
  'sleeps until the queue has something to claim (ready is true) or the timeout has passed (false); not in a transaction block';

CREATE PROCEDURE jobq.wait_any(
  queues text[],
  "timeout" interval DEFAULT '30 s',
  INOUT queue text DEFAULT NULL
)
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_wait_any';

COMMENT ON PROCEDURE jobq.wait_any IS
  'sleeps until one of up to 64 queues has something to claim and says which, or NULL when the timeout has passed; not in a transaction block';
