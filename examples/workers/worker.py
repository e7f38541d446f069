"""A worker in plain Python: claims work of a queue over HTTP, does it, and reports. No package is needed.

TREADLE_SERVER=http://127.0.0.1:8787 TREADLE_KEY=tdl_… python worker.py texts
"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

SERVER, KEY, QUEUE = os.environ["TREADLE_SERVER"], os.environ["TREADLE_KEY"], sys.argv[1]
LEASE_MS = 15_000
WORK = {"upper": lambda input, config: {"text": input["text"].upper() + config["end"]}}  # by the name of the work


def post(path, body):
    """The answer; None if the work is over or another worker has it (410). Repeats while the service is away."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{SERVER}/api/v1/tasks/{path}", json.dumps(body).encode(), headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as refused:
            if refused.code == 410:
                return None
            if refused.code not in (429, 500, 502, 503, 504):
                raise
        except OSError:
            pass  # the service is being restarted: a result that is sent twice counts once
        time.sleep(1)


def heartbeats(task, done):
    """Signs of life, three for each lease, until the work is done."""
    while not done.wait(LEASE_MS / 3_000):
        post(f"{task}/heartbeat", {"lease_ms": LEASE_MS})


def work(task):
    """Does one task and reports its result."""
    done = threading.Event()
    threading.Thread(target=heartbeats, args=(task["task"], done), daemon=True).start()
    try:
        output = WORK[task["config"]["name"]](task["input"], task["config"]["config"])
        post(f"{task['task']}/complete", {"output": output})
    except Exception as problem:
        error = {"kind": type(problem).__name__, "message": str(problem)}
        post(f"{task['task']}/fail", {"error": error})
    finally:
        done.set()


wanted = {"queues": [QUEUE], "kinds": ["work"], "worker": f"python-{os.getpid()}", "wait_ms": 30_000}
while True:
    for task in (post("claim", {**wanted, "lease_ms": LEASE_MS}) or {"tasks": []})["tasks"]:
        work(task)
