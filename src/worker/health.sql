-- What an operator looks at first.

CREATE FUNCTION jobq.health()
RETURNS TABLE (check_name text, ok boolean, message text)
LANGUAGE c ROWS 13 AS 'MODULE_PATHNAME', 'jobq_health';

COMMENT ON FUNCTION jobq.health() IS
  'whether jobq works in this database and what stands in its way, a row for each check; works without the preloaded library too';

CREATE FUNCTION jobq.warn_if_nothing_runs() RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_warn_if_nothing_runs';

COMMENT ON FUNCTION jobq.warn_if_nothing_runs() IS
  'a WARNING if no process would look after this database; for the install script';
