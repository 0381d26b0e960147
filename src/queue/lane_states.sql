-- What shared memory knows of the ready jobs.

CREATE FUNCTION jobq.lane_states()
RETURNS TABLE (
  queue_id bigint,
  priority integer,
  "cursor" bigint,
  vtime bigint,
  highest bigint,
  groups bigint,
  lowerings bigint,
  found_too_high bigint,
  transactions integer
)
LANGUAGE c ROWS 10 AS 'MODULE_PATHNAME', 'jobq_lane_states';

COMMENT ON FUNCTION jobq.lane_states() IS 'the lanes of this database, for the view';

CREATE VIEW jobq.lanes AS
SELECT
  q.name AS queue, l.priority, l."cursor", l.vtime, l.highest, l.groups, l.lowerings,
  l.found_too_high, l.transactions
FROM jobq.lane_states() AS l
JOIN jobq.queue AS q ON q.queue_id = l.queue_id;

COMMENT ON VIEW jobq.lanes IS
  'queues and priorities whose claims start at a cursor; groups: that have a backlog; found_too_high must be 0';
