"""The first minute: `./dev run` ends with a link to a run that moves on the canvas and then asks the visitor."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.shell import Shell

COMMAND = [sys.executable, "-m", "treadle.cli.nodes.tour", "--port", "0", "--no-browser"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_the_tour_prints_a_link_that_signs_in_and_leads_to_its_run(shell: Shell) -> None:
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=shell.folder, env=shell.environment
    ) as tour:
        try:
            assert tour.stdout is not None and tour.stderr is not None
            serving = tour.stdout.readline()
            link = next(found for line in tour.stderr if (found := re.search(r"http://\S+token=\S+", line)))[0]
            assert serving == f"treadle: serving {link.partition('/?')[0]}\n"
            at = urlsplit(link)
            connection = HTTPConnection(at.netloc, timeout=30)
            connection.request("GET", f"/?{at.query}")
            answer = connection.getresponse()
            assert answer.status == 303
            page, cookie = answer.headers["location"], answer.headers["set-cookie"].partition(";")[0]
            answer.read()
            connection.request("GET", f"/api/v1{page}", headers={"Cookie": cookie})
            run = connection.getresponse()
            assert run.status == 200
            assert b'"key":"first-draft"' in run.read()
            connection.close()
        finally:
            tour.send_signal(signal.SIGTERM)
        _out, said = tour.communicate(timeout=60)
        assert (tour.returncode, said.splitlines()[-1]) == (0, "stopped")
