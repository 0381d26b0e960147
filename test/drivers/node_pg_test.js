#!/usr/bin/env node
// Every public function through node-pg, which sends its parameters as text without a type: once with all its arguments by position, once with
// all of them by name; then what comes back. The list of functions is compared with pg_proc, so that a new one without a test here
// fails. Prints TAP; connects by PGHOST, PGPORT, PGUSER, PGDATABASE to a database with the extension.
'use strict';

const assert = require('assert');
const { Client } = require('pg');

const Q = 'node queue';
const client = new Client();
let number = 0;

const rows = async (text, ...values) => (await client.query(text, values)).rows;
const one = async (text, ...values) => Object.values((await rows(text, ...values))[0])[0];

const freshName = () => `node ${++number}`;

async function madeQueue() {
  const name = freshName();
  await one('SELECT jobq.create_queue($1)', name);
  return name;
}

async function withJob() {
  const queue = await madeQueue();
  await one("SELECT jobq.enqueue('work', queue => $1)", queue);
  return queue;
}

// A lease of a job of its own.
async function token() {
  const [{ job_id, attempt }] = await rows('SELECT job_id, attempt FROM jobq.claim($1)', await withJob());
  return { job_id, attempt };
}

async function tokens(count) {
  const held = [];
  for (let i = 0; i < count; i++) held.push(await token());
  return { job_ids: held.map((h) => h.job_id), attempts: held.map((h) => h.attempt) };
}

async function dead(queue) {
  const job = await one("SELECT jobq.enqueue('work', queue => $1)", queue);
  for (const { job_id, attempt } of await rows('SELECT job_id, attempt FROM jobq.claim($1, 10000)', queue))
    await one("SELECT jobq.fail($1, $2, 'no', retry => false)", job_id, attempt);
  return job;
}

const job = (key) => one("SELECT jobq.enqueue('work', queue => $1, job_key => $2)", Q, key ?? null);
const later = () => new Date(Date.now() + 3600 * 1000);

const settings = (queue) => ({
  queue, lease: '90 s', max_attempts: 7, max_crashes: 2, retry_base: '1.5 s', retry_cap: 'PT10M', keep_completed: '2 days', keep_dead: '1000 years',
});

const producer = () => ({
  task: 'work', payload: { a: [1, null, 'ü'] }, queue: Q, priority: 3, run_at: null, delay: '1 min', max_attempts: 4, max_crashes: 2,
  group_key: 'tenant', job_key: freshName(), job_key_mode: 'replace', headers: { trace: 'x' },
});

function batch() {
  const { payload, job_key, job_key_mode, ...rest } = producer();
  // an array would be sent as an SQL array: JSON text is what a jsonb parameter takes
  return { task: rest.task, payloads: JSON.stringify([1, 'two', { three: 3 }]), ...rest };
}

const schedule = (name) => ({
  name, schedule: '0 12 * * *', task: 'work', payload: { a: 1 }, queue: Q, timezone: 'Europe/Berlin', overlap: 'allow', catch_up: 'none',
  starts_at: null, ends_at: new Date(Date.now() + 864e6), jitter: '5 s', priority: 3, max_attempts: 4, max_crashes: 2, group_key: 'tenant',
  headers: { trace: 'x' },
});

const command = (name) => ({
  name, schedule: '0 12 * * *', command: 'SELECT 1', timezone: 'Europe/Berlin', overlap: 'allow', catch_up: 'none', starts_at: null,
  ends_at: new Date(Date.now() + 864e6), jitter: '5 s', timeout: '1 min', max_attempts: 2, run_as: null,
});

async function madeSchedule() {
  const name = freshName();
  await one('SELECT jobq.schedule_job($1, $2, $3)', name, '@daily', 'work');
  return name;
}

const value = (expected) => (found) => assert.deepStrictEqual(found.map((row) => Object.values(row)), [[expected]]);
const oneRow = (found) => assert.strictEqual(found.length, 1);
const sorted = (list) => list.map(BigInt).sort((a, b) => (a < b ? -1 : 1));
const claimed = (queueOf) => (found, given) => {
  assert.strictEqual(found.length, 1);
  assert.strictEqual(found[0].task, 'work');
  assert.strictEqual(found[0].attempt, 1);
  assert.strictEqual(found[0].queue, queueOf(given));
  assert.ok(found[0].lease_expires_at instanceof Date);
};

// name: [all the arguments in the order of the declaration, what the rows have to be]
const calls = {
  create_queue: [() => settings(freshName()), value(true)],
  alter_queue: [async () => settings(await madeQueue()), oneRow],
  drop_queue: [async () => ({ queue: await withJob(), force: true }), oneRow],
  pause_queue: [async () => ({ queue: await madeQueue() }), oneRow],
  resume_queue: [async () => ({ queue: await madeQueue() }), oneRow],
  purge_queue: [async () => ({ queue: await withJob() }), value('1')],
  set_group: [async () => ({ queue: await madeQueue(), group_key: 'group', weight: 10 }), oneRow],
  queue_counts: [async () => ({ queue: await withJob(), exact: true }), (found) => assert.strictEqual(found[0].ready, '1')],
  enqueue: [producer, (found) => assert.match(found[0].enqueue, /^\d+$/)],
  enqueue_unique: [producer, (found) => assert.strictEqual(found[0].created, true)],
  enqueue_batch: [batch, (found) => assert.strictEqual(found.length, 3)],
  claim: [async () => ({ queue: await withJob(), max_jobs: 5, worker: 'w', lease: '30 s' }), claimed((given) => given.queue)],
  claim_from: [async () => ({ queues: [await madeQueue(), await withJob()], max_jobs: 5, worker: 'w', lease: '30 s' }), claimed((given) => given.queues[1])],
  renew: [async () => ({ ...(await token()), lease: '5 min' }), (found) => assert.ok(Math.abs(found[0].renew - Date.now() - 300000) < 60000)],
  renew_batch: [async () => ({ ...(await tokens(2)), lease: '5 min' }), (found, given) => assert.deepStrictEqual(sorted(found.map((row) => row.job_id)), sorted(given.job_ids))],
  complete: [async () => ({ ...(await token()), result: { ok: true } }), value(true)],
  complete_batch: [async () => ({ ...(await tokens(2)), results: JSON.stringify([{ n: 1 }, null]) }),
    (found, given) => assert.deepStrictEqual(sorted(found.map((row) => Object.values(row)[0])), sorted(given.job_ids))],
  complete_and_claim: [async () => ({ ...(await tokens(1)), queue: await withJob(), max_jobs: 1, worker: 'w', lease: '30 s', results: JSON.stringify(['r']) }),
    claimed((given) => given.queue)],
  fail: [async () => ({ ...(await token()), error: 'it broke: ü', retry_in: '0', retry: true }), value('ready')],
  snooze: [async () => ({ ...(await token()), delay: '1 min' }), value(true)],
  cancel: [async () => ({ job_id: await job(), reason: 'not wanted' }), value(true)],
  cancel_key: [async () => { const key = freshName(); await job(key); return { queue: Q, job_key: key, reason: 'not wanted' }; }, value(true)],
  retry: [async () => ({ job_id: await dead(await madeQueue()), run_at: later() }), value(true)],
  retry_dead: [async () => { const queue = await madeQueue(); await dead(queue); return { queue, max_jobs: 10 }; }, value('1')],
  reschedule: [async () => ({ job_id: await job(), run_at: later(), priority: 9 }), value(true)],
  wait: [async () => ({ queue: await withJob(), timeout: '30 s', ready: null }), (found) => assert.deepStrictEqual(found, [{ ready: true }])],
  wait_any: [async () => ({ queues: [await madeQueue(), await withJob()], timeout: '1 h', queue: null }),
    (found, given) => assert.deepStrictEqual(found, [{ queue: given.queues[1] }])],
  schedule_job: [() => schedule(freshName()), (found) => assert.ok(BigInt(found[0].schedule_job) > 0n)],
  schedule: [() => command(freshName()), (found) => assert.ok(BigInt(found[0].schedule) > 0n)],
  enqueue_sql: [() => ({ command: 'SELECT 1', run_at: null, delay: '1 h', timeout: '1 min', max_attempts: 2, run_as: null }),
    (found) => assert.match(found[0].enqueue_sql, /^\d+$/)],
  cancel_sql: [async () => ({ job_id: await one("SELECT jobq.enqueue_sql('SELECT 1', delay => '1 h')"), reason: 'not wanted' }), value(true)],
  alter_schedule: [async () => ({ ...schedule(await madeSchedule()), command: null, timeout: null, run_as: null }), oneRow],
  unschedule: [async () => ({ name: await madeSchedule() }), value(true)],
  pause_schedule: [async () => ({ name: await madeSchedule() }), oneRow],
  resume_schedule: [async () => ({ name: await madeSchedule() }), oneRow],
  run_schedule: [async () => ({ name: await madeSchedule() }), oneRow],
  adopt: [() => ({}), oneRow],
  next_runs: [() => ({ schedule: '0 12 * * *', count: 2, timezone: 'UTC', after: later() }), (found) => assert.strictEqual(found.length, 2)],
  lane_states: [async () => (await withJob()) && {}, (found) => assert.ok(found.some(({ highest }) => BigInt(highest) > 0n))],
  health: [() => ({}), ([{ check_name, ok }]) => assert.deepStrictEqual([check_name, ok], ['preloaded', true])],
  sweep: [() => ({ max_jobs: 100 }), (found) => assert.deepStrictEqual(Object.keys(found[0]), ['promoted', 'retried', 'died'])],
};

async function call(name, kind, notation) {
  const [makeArguments, check] = calls[name];
  const given = await makeArguments();
  const places = Object.keys(given).map((key, i) => (notation === 'positional' ? `$${i + 1}` : `${key} => $${i + 1}`)).join(', ');
  const text = kind === 'p' ? `CALL jobq.${name}(${places})` : `SELECT * FROM jobq.${name}(${places})`;
  check(await rows(text, ...Object.values(given)), given);
}

const asParameter = (payload) => JSON.stringify(payload);

async function jsonComesBack() {
  const queue = await madeQueue();
  const payloads = [{}, [], 0, 'text', null, true, { deep: [[{ 'ü€😀': '"\\\n' }]], small: -0.1, zeros: '1.10' }];
  for (const payload of payloads) {
    const id = await one("SELECT jobq.enqueue('t', $1, queue => $2, headers => $3)", asParameter(payload), queue, asParameter({ h: payload }));
    const [found] = await rows('SELECT job_id, attempt, payload, headers FROM jobq.claim($1)', queue);
    assert.strictEqual(found.job_id, id);
    assert.deepStrictEqual(found.payload, payload);
    assert.deepStrictEqual(found.headers, { h: payload });
    assert.strictEqual(await one('SELECT jobq.complete($1, $2, $3)', found.job_id, found.attempt, asParameter({ r: payload })), true);
    assert.deepStrictEqual(await one('SELECT result FROM jobq.history WHERE job_id = $1', id), { r: payload });
  }
  await rows("SELECT jobq.enqueue_batch('t', $1, queue => $2)", asParameter(payloads), queue);
  assert.deepStrictEqual((await rows('SELECT payload FROM jobq.claim($1, 10)', queue)).map((row) => row.payload), payloads);
}

async function intervalsAreUnderstood() {
  for (const [length, seconds] of [['1 s', 1], ['24:00:00', 86400], ['PT2M', 120], ['1 day', 86400], ['1500 ms', 1.5]]) {
    const { job_id, attempt } = await token();
    const until = await one('SELECT jobq.renew($1, $2, $3)', job_id, attempt, length);
    assert.ok(Math.abs(until - Date.now() - seconds * 1000) < 5000, `${length}: ${until}`);
  }
  for (const length of ['1 month', '-1 s', '25 h'])
    await assert.rejects(rows('SELECT * FROM jobq.claim($1, lease => $2)', Q, length), { code: '22023' });
}

async function instantsAreUnderstood() {
  for (const when of [later(), later().toISOString()]) {
    const id = await one('SELECT jobq.enqueue($1, queue => $2, run_at => $3)', 't', Q, when);
    assert.strictEqual((await one('SELECT run_at FROM jobq.jobs WHERE job_id = $1', id)).getTime(), new Date(when).getTime());
  }
}

// Ids beyond what a number of JavaScript holds, as the strings that node-pg gives and as BigInt, on a sequence that is put back.
async function largeNumbersAreKept() {
  const before = await one('SELECT last_value FROM jobq.job_number');
  for (const start of ['2147483653', '9007199254740993']) {
    await one("SELECT setval('jobq.job_number', $1)", start);
    const queue = await madeQueue();
    const id = await one('SELECT jobq.enqueue($1, queue => $2)', 't', queue);
    assert.ok(BigInt(id) > BigInt(start));
    const [found] = await rows('SELECT job_id, attempt FROM jobq.claim($1)', queue);
    assert.strictEqual(found.job_id, id);
    assert.strictEqual(await one('SELECT jobq.renew($1, $2) IS NOT NULL', BigInt(id), found.attempt), true);
    assert.strictEqual(await one('SELECT job_id FROM jobq.renew_batch($1, $2)', [id], [found.attempt]), id);
    assert.strictEqual(await one('SELECT * FROM jobq.complete_batch($1, $2)', [BigInt(id)], [found.attempt]), id);
    await one('SELECT jobq.drop_queue($1, true)', queue);
  }
  await one("SELECT setval('jobq.job_number', $1)", before);
}

async function nullMeansTheDefault() {
  const queue = await withJob();
  assert.strictEqual((await rows('SELECT * FROM jobq.claim($1, $2, $3, $4)', queue, null, null, null))[0].task, 'work');
  assert.match(await one('SELECT jobq.enqueue($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)', 't', null, queue, ...Array(9).fill(null)), /^\d+$/);
  await assert.rejects(rows('SELECT jobq.enqueue($1)', null), { code: '22004', message: /task/ });
}

async function nothingInHand() {
  assert.deepStrictEqual(await rows('SELECT * FROM jobq.claim($1)', await madeQueue()), []);
  assert.deepStrictEqual(await rows('SELECT * FROM jobq.complete_batch($1, $2)', [], []), []);
  assert.strictEqual(await one('SELECT jobq.renew($1, $2)', 1, 2), null);
  assert.strictEqual(await one('SELECT jobq.fail($1, $2, $3)', 1, 2, 'late'), null);
}

async function nothingToWaitFor() {
  const queue = await madeQueue();
  assert.deepStrictEqual(await rows('CALL jobq.wait($1, $2)', queue, '20 ms'), [{ ready: false }]);
  assert.deepStrictEqual(await rows('CALL jobq.wait_any($1, $2)', [queue], '20 ms'), [{ queue: null }]);
}

async function waitingNeedsAutocommit() {
  for (const text of ['CALL jobq.wait($1, $2)', 'CALL jobq.wait_any(ARRAY[$1], $2)']) {
    await rows('BEGIN');
    await assert.rejects(rows(text, Q, '0'), { code: '25001', hint: /autocommit/ });
    await rows('ROLLBACK');
  }
  assert.strictEqual((await rows('CALL jobq.wait($1, $2)', Q, '0')).length, 1);
}

async function preparedStatementsWork() {
  const queue = await madeQueue();
  for (let n = 0; n < 12; n++) {
    await client.query({ name: 'enqueue', text: 'SELECT jobq.enqueue($1, $2, $3)', values: ['t', String(n), queue] });
    const [found] = (await client.query({ name: 'claim', text: 'SELECT * FROM jobq.claim($1, $2)', values: [queue, 1] })).rows;
    assert.strictEqual(found.payload, n);
    assert.strictEqual((await client.query({ name: 'complete', text: 'SELECT jobq.complete($1, $2)', values: [found.job_id, found.attempt] })).rows[0].complete, true);
  }
}

async function main() {
  await client.connect();
  await client.query('SET client_min_messages = error');
  await one('SELECT jobq.create_queue($1)', Q);
  const functions = {};
  for (const { proname, prokind, names } of await rows(`
      SELECT proname, prokind, coalesce((SELECT array_agg(n ORDER BY i) FROM unnest(proargnames) WITH ORDINALITY AS a(n, i)
          WHERE proargmodes IS NULL OR proargmodes[i] IN ('i', 'b')), '{}') AS names
      FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace AND has_function_privilege('jobq_admin', oid, 'EXECUTE')
        AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)`))
    functions[proname] = { kind: prokind, names };
  const tests = [
    ['every public function is here', () => assert.deepStrictEqual(Object.keys(calls).sort(), Object.keys(functions).sort())],
    ['every argument is here', async () => {
      for (const [name, { names }] of Object.entries(functions)) assert.deepStrictEqual(Object.keys(await calls[name][0]()), names, name);
    }],
  ];
  for (const name of Object.keys(calls).sort())
    for (const notation of ['positional', 'by name']) tests.push([`${name}, ${notation}`, () => call(name, functions[name].kind, notation)]);
  for (const test of [jsonComesBack, intervalsAreUnderstood, instantsAreUnderstood, largeNumbersAreKept, nullMeansTheDefault, nothingInHand, nothingToWaitFor,
    waitingNeedsAutocommit, preparedStatementsWork])
    tests.push([test.name.replace(/[A-Z]/g, (letter) => ' ' + letter.toLowerCase()), test]);

  console.log(`1..${tests.length}`);
  let failed = 0;
  for (const [n, [name, test]] of tests.entries()) {
    try {
      await test();
      console.log(`ok ${n + 1} - node-pg: ${name}`);
    } catch (error) {
      failed++;
      console.log(`not ok ${n + 1} - node-pg: ${name}`);
      console.log(String(error.stack).split('\n').map((line) => '# ' + line).join('\n'));
    }
  }
  for (const { queue } of await rows("SELECT queue FROM jobq.queues WHERE queue LIKE 'node%'")) await one('SELECT jobq.drop_queue($1, true)', queue);
  await client.end();
  process.exitCode = failed ? 1 : 0;
}

main().catch((error) => {
  console.log(`Bail out! ${error.stack}`);
  process.exitCode = 1;
});
