-- Groups.

-- For each row, since rows that come by logical replication fire no other triggers.
CREATE TRIGGER group_weight_changed
AFTER INSERT OR UPDATE OR DELETE ON jobq.group_weight
FOR EACH ROW EXECUTE FUNCTION jobq.queue_changed();

CREATE TRIGGER group_weight_truncated
AFTER TRUNCATE ON jobq.group_weight
FOR EACH STATEMENT EXECUTE FUNCTION jobq.queue_changed();

ALTER TABLE jobq.group_weight ENABLE ALWAYS TRIGGER group_weight_changed;
ALTER TABLE jobq.group_weight ENABLE ALWAYS TRIGGER group_weight_truncated;

CREATE FUNCTION jobq.set_group(
  queue text,
  group_key text,
  weight integer DEFAULT 1
) RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_set_group';

CREATE VIEW jobq.groups AS
SELECT q.name AS queue, w.group_key, w.weight
FROM jobq.group_weight AS w
JOIN jobq.queue AS q ON q.queue_id = w.queue_id;

COMMENT ON VIEW jobq.groups IS 'groups whose share of their queue is not 1, with it';

COMMENT ON FUNCTION jobq.set_group IS
  'sets a group''s share of its queue, 1 to 1000; for the jobs that become ready from then on';
