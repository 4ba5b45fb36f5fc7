"""What a line of the access log says of its request."""

import time
from datetime import datetime

from support.origin import reply
from support.wait import until


def test_the_time_of_a_line_is_that_of_its_request_not_of_its_response(gateway, origin):
    arrived = []

    def answer_late(_):
        arrived.append(time.time())
        until(lambda: time.time() > arrived[0] + 0.3, "the response is late")
        return reply()

    there = origin(answer_late)
    running = gateway()
    before = time.time()
    assert running.get(there.url("/")).status == 200
    (line,) = running.wait_access(1)
    logged = datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
    # The gateway reads its clock once a turn, in whole milliseconds.
    assert before - 0.05 < logged < arrived[0] + 0.05
    assert line["duration_us"] >= 300_000
