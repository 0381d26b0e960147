"""Copies of the checkout that lack one guard each: an auditor that finds nothing in a run of one of them is worth nothing.

guards/NAME.patch begins with a sentence that says what it takes out. Cluster(checkout=build(...)) runs the copy.
"""
import os
import pathlib
import shutil
import subprocess

from cluster import Trouble

# In which mode the lack of it shows.
MODES = {'durable_claim': 'async', 'lowering_commit': 'calm', 'lowering_abort': 'calm', 'bounded_cursor': 'calm', 'group_order': 'calm'}
# How much longer that takes: a crash loses a claim only if nothing else was made durable since; two must want one key at one instant.
LONGER = {'durable_claim': 4, 'key_uniqueness': 2}
FOLDER = pathlib.Path(__file__).resolve().parent / 'guards'


def names():
    return sorted(patch.stem for patch in FOLDER.glob('*.patch'))


def mode_of(name):
    return MODES.get(name, 'crash')


def longer(name):
    return LONGER.get(name, 1)


def patch_of(name):
    return FOLDER / f'{name}.patch'


def git(folder, *words):
    # The copy is no part of a repository that it may happen to stand in: git would pass over its files.
    environment = {**os.environ, 'GIT_CEILING_DIRECTORIES': str(folder.parent)}
    done = subprocess.run(['git', *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Trouble(f'git {" ".join(map(str, words))}: {done.stderr.strip()}')
    return done.stdout


def build(checkout, patch, into):
    """The tracked files of the checkout as they stand there, patched, in a folder that is not there yet. With the objects, so that
    only what the patch touches is compiled."""
    checkout, into = pathlib.Path(checkout).resolve(), pathlib.Path(into).resolve()
    for name in git(checkout, 'ls-files', '-z').split('\0'):
        if name and (checkout / name).exists():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, into / name)
    if (checkout / 'build/obj').exists():
        shutil.copytree(checkout / 'build/obj', into / 'build/obj')
    try:
        git(into, 'apply', pathlib.Path(patch).resolve())
    except Trouble as error:
        raise Trouble(f'{pathlib.Path(patch).name} does not fit the source any more: make it anew ({error})') from None
    return into
