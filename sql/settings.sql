-- Settings: names, defaults, bounds, who may change them, and what they do.
\set VERBOSITY terse
SELECT name, setting, unit, context, vartype, min_val, max_val, enumvals, boot_val, pending_restart
FROM pg_settings WHERE name LIKE 'jobq.%' ORDER BY name;
-- each says what it does in a sentence
SELECT name FROM pg_settings WHERE name LIKE 'jobq.%' AND NOT short_desc ~ '^[A-Z].{20,}\.$';

-- the prefix is ours: a name with a typing error is an error
SET jobq.claim_in_transactions = 'allow';
SET jobq.nonsense = 1;
-- values out of bounds
SET jobq.claim_in_transaction = 'never';
SET jobq.claim_in_transaction = on;
SET jobq.async_claims = 'perhaps';
SET jobq.claim_in_transaction = 'ALLOW';
SHOW jobq.claim_in_transaction;
RESET jobq.claim_in_transaction;
SHOW jobq.claim_in_transaction;

-- durability is the superuser's to give up
CREATE ROLE jobq_settings_user;
SET ROLE jobq_settings_user;
SET jobq.claim_in_transaction = 'error';
SET jobq.async_claims = on;
\echo :LAST_ERROR_SQLSTATE
SHOW jobq.async_claims;
RESET ROLE;
RESET jobq.claim_in_transaction;
DROP ROLE jobq_settings_user;

-- promise 2: a claim's commit is on disk when it returns, whatever synchronous_commit says
SELECT jobq.create_queue('settings', retry_base => '0') AS made;
SELECT count(*) FROM jobq.enqueue_batch('t', (SELECT jsonb_agg(n) FROM generate_series(1, 600) AS n), 'settings');
CREATE TEMP TABLE flushed (verb text, durable boolean);
SET synchronous_commit = off;
CREATE PROCEDURE pg_temp.measure(verb text, call text)
LANGUAGE plpgsql AS $$
DECLARE
    written pg_lsn;
BEGIN
    FOR turn IN 1 .. 40 LOOP
        EXECUTE call;
        written := pg_current_wal_insert_lsn();
        COMMIT;
        INSERT INTO flushed VALUES (verb, pg_current_wal_flush_lsn() > written);
        COMMIT;
    END LOOP;
END
$$;
CALL pg_temp.measure('claim', 'SELECT jobq.claim(''settings'')');
CALL pg_temp.measure('claim 10', 'SELECT jobq.claim(''settings'', 10)');
CALL pg_temp.measure('claim_from', 'SELECT jobq.claim_from(ARRAY[''settings''])');
CALL pg_temp.measure('complete_and_claim', 'SELECT jobq.complete_and_claim(''{}'', ''{}'', ''settings'')');
SELECT verb, bool_and(durable) AS always FROM flushed GROUP BY 1 ORDER BY 1;
-- the session's own setting stays as it was
SHOW synchronous_commit;
-- async_claims: they follow it (what is not always on disk may be there by chance)
SET jobq.async_claims = on;
CALL pg_temp.measure('async claim', 'SELECT jobq.claim(''settings'')');
RESET jobq.async_claims;
SELECT bool_and(durable) AS always FROM flushed WHERE verb = 'async claim';
-- an enqueue is as durable as the session wants it
CALL pg_temp.measure('enqueue', 'SELECT jobq.enqueue(''t'', queue => ''settings'')');
SELECT bool_and(durable) AS always FROM flushed WHERE verb = 'enqueue';
RESET synchronous_commit;
SELECT jobq.drop_queue('settings', true);
