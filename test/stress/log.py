"""What the processes of a run write down outside of the database, and how it is read.

One file a process, one JSON object a line, on disk before the next step. An operation is two lines: what is about to be done
(`begins`), and what came of it: `done` with the answer, `raised` when the server refused it, `unknown` when the connection was lost
over it. An operation without a second line is unknown too: its process was killed.
"""
import collections
import glob
import json
import os
import time


class Log:
    def __init__(self, folder, name):
        self.file = os.open(os.path.join(folder, name + '.log'), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC, 0o644)

    def note(self, event, **fields):
        line = {'event': event, 'mono': time.monotonic(), **fields}
        os.write(self.file, (json.dumps(line) + '\n').encode())


class Story:
    """All that was written down: operations by what they do, other events by their name."""

    def __init__(self, operations, events):
        self.operations = operations
        self.events = events
        self.by = collections.defaultdict(list)
        for operation in operations:
            self.by[operation['do']].append(operation)
        for event in events:
            self.by[event['event']].append(event)

    def done(self, *kinds):
        return [operation for kind in kinds for operation in self.by[kind] if operation['outcome'] == 'done']

    def unknown(self, *kinds):
        return [operation for kind in kinds for operation in self.by[kind] if operation['outcome'] == 'unknown']


def read(folder):
    operations, events = [], []
    for name in sorted(glob.glob(os.path.join(folder, '*.log'))):
        actor = os.path.basename(name)[:-len('.log')]
        begun = {}
        for line in lines(name):
            kind = line['event']
            if kind == 'begins':
                begun[line['op']] = {**line, 'actor': actor, 'label': f'{actor}/{line["op"]}', 'outcome': 'unknown', 'received': None}
                operations.append(begun[line['op']])
            elif kind in ('done', 'raised', 'unknown'):
                begun[line['op']].update(outcome=kind, received=line['mono'], **{k: v for k, v in line.items() if k not in ('event', 'mono', 'op')})
            else:
                events.append({**line, 'actor': actor})
    return Story(operations, events)


def lines(name):
    """A process that is killed in the middle of a line leaves a torn one at the end, and nothing after it."""
    with open(name, encoding='utf-8') as file:
        text = file.read()
    for line in text.split('\n')[:-1]:
        yield json.loads(line)
