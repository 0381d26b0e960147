"""The processes of a run. Whoever dies is replaced; the nemesis, a process too, finds its victims in a file."""
import json
import multiprocessing
import os
import signal
import time

from log import Log
from operators import Observer, Operator, Sweeper
from producer import Producer
from worker import Worker

ROLES = {actor.role: actor for actor in (Worker, Producer, Operator, Sweeper, Observer)}
fork = multiprocessing.get_context('fork')


class Crowd:
    def __init__(self, run, numbers):
        self.run = run
        self.log = Log(run.folder, 'crowd')
        self.places = {(role, number): 0 for role, count in numbers.items() for number in range(count)}
        self.processes = {}

    def mend(self):
        """Starts whoever is not there."""
        changed = False
        for place, life in self.places.items():
            process = self.processes.get(place)
            if process and process.is_alive():
                continue
            if process and process.exitcode not in (0, -9):
                self.log.note('error', message=f'{place} life {life} ended with {process.exitcode}')
            if time.monotonic() < self.run.until.value:
                changed = True
                self.places[place] = life + 1
                self.processes[place] = self.start(*place, life + 1)
        if changed:
            self.publish()

    def start(self, role, number, life):
        def live():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # who runs this ends the others
            ROLES[role](self.run, number, life).live()
        process = fork.Process(target=live, name=f'{role}-{number:02d}', daemon=True)
        process.start()
        return process

    def publish(self):
        name = os.path.join(self.run.folder, 'pids.json')
        with open(name + '.new', 'w', encoding='utf-8') as file:
            json.dump({process.name: process.pid for process in self.processes.values()}, file)
        os.rename(name + '.new', name)

    def wait(self, seconds):
        """After the run's end everybody goes by himself; who does not is a finding."""
        deadline = time.monotonic() + seconds
        for process in self.processes.values():
            process.join(max(0, deadline - time.monotonic()))
            if process.exitcode is None:
                self.log.note('error', message=f'{process.name} does not come to its end')
            elif process.exitcode not in (0, -9):
                self.log.note('error', message=f'{process.name} ended with {process.exitcode}')


    def kill(self):
        for process in self.processes.values():
            process.kill()
            process.join()


class Victims:
    """What the nemesis knows of the crowd."""

    def __init__(self, folder):
        self.name = os.path.join(folder, 'pids.json')

    def pids(self):
        with open(self.name, encoding='utf-8') as file:
            return json.load(file)
