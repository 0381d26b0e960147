-- The bridge between the server's errors and C++: what is raised arrives whole, every destructor
-- has run, and the session goes on.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'raise_deep', 'raise_own', 'throw_standard', 'throw_long', 'throw_memory', 'throw_number',
    'raise_in_turn', 'rethrow', 'alive'
  ]
  LOOP
    EXECUTE format('CREATE FUNCTION %I() RETURNS integer LANGUAGE c AS ''bridge'', %L',
      name, 'bridge_' || name);
  END LOOP;
END
$$;
CREATE FUNCTION recover() RETURNS boolean LANGUAGE c AS 'bridge', 'bridge_recover';

CREATE FUNCTION caught(name text, OUT code text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SELECT %I()', name);
  message := 'nothing was raised';
EXCEPTION
  WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
      detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END
$$;

\pset format unaligned
\pset tuples_only on
-- A server's error under ten C++ frames keeps SQLSTATE, message, detail and hint.
SELECT * FROM caught('raise_deep');
-- So does a room's own, whatever signs it has.
SELECT * FROM caught('raise_own');
-- C++ exceptions become errors.
SELECT * FROM caught('throw_standard');
SELECT code, length(message) FROM caught('throw_long');
SELECT * FROM caught('throw_memory');
SELECT * FROM caught('throw_number');
-- An error whose memory was a loop's turn.
SELECT * FROM caught('raise_in_turn');
-- Every destructor has run.
SELECT alive();

-- Without a handler around them, and many times over: the server's error stack has five places.
SELECT raise_deep();
SELECT throw_standard();
SELECT count(*) FROM generate_series(1, 1000), LATERAL caught('raise_deep');
SELECT count(*) FROM generate_series(1, 1000), LATERAL caught('throw_standard');
SELECT alive();

-- A subtransaction that is rolled back ends the error; another exception passes through it.
SELECT recover();
SELECT * FROM caught('rethrow');
SELECT alive();

-- The session is usable, in a transaction with savepoints too.
BEGIN;
SAVEPOINT s;
SELECT raise_deep();
ROLLBACK TO s;
SELECT recover();
COMMIT;
SELECT current_user = session_user;
