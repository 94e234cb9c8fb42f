"""What each check is for, and what to do about one that warns or fails: for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """For people: what a check is for, and what to do when it warns or fails."""

    meaning: str
    remedy: str


EXPLANATIONS: dict[str, Explanation] = {
    "unsolicited": Explanation(
        "Each reply must settle one request; a server that answers twice or unasked is fast at"
        " nothing.",
        "Mend the server: look at what it sends with `curl -v --http1.1` or tcpdump.",
    ),
    "errors": Explanation(
        "Failures are often quicker than answers: a figure with many is a figure about failing.",
        "Look at the classes of the failures and at the server's log; lower --connections, raise"
        " --timeout, or name the answer that is right with --expect-status.",
    ),
    "stale": Explanation(
        "A server that closes kept connections makes its clients ask twice.",
        "Raise the server's keep-alive time and its requests per connection.",
    ),
    "littles-law": Explanation(
        "Throughput times service time must give the requests that were allowed in flight.",
        "Above: replies are taken for those of earlier requests, or a client has more under way"
        " than it was told to; look at either. Below: slots stood empty; look at failures and"
        " reconnects. Connecting and ending connections is not in it; where they take much of the"
        " time, without --close that time goes into requests.",
    ),
    "generator-limit": Explanation(
        "If the generator had no time left, the figure is the generator's, not the server's.",
        "Give the generator more --threads or CPUs of its own (--cpus), or the server fewer; if it"
        " ran out of files, raise `ulimit -n`, if of ports, add a --local-address. Where a client"
        " is measured, give the reference server more --threads.",
    ),
    "send-lag": Explanation(
        "A generator that sends late measures its own lateness as the server's.",
        "Give the generator CPUs of its own (--cpus) or more --threads, or lower the --rate.",
    ),
    "client-share": Explanation(
        "What a request waits within the generator is in its latency, but no doing of the server.",
        "Use fewer connections per thread: more --threads, or lower -c; give the generator CPUs of"
        " its own (--cpus), or send from another host.",
    ),
    "rate-reached": Explanation(
        "A rate that was not sent is another load than the one that was asked for.",
        "Use more --connections, so that slow answers hold up fewer requests, or lower the --rate.",
    ),
    "starvation": Explanation(
        "A few connections served quickly and the others not at all give a high throughput.",
        "Look at how the server accepts and polls connections; compare fewer --connections.",
    ),
    "fairness": Explanation(
        "Percentiles over all requests hide that some connections get most of the replies.",
        "Look at how the server spreads connections over its threads; use a longer --duration.",
    ),
    "connections": Explanation(
        "The load that was asked for needs all its connections, for the whole window.",
        "Look at the server's log, backlog and file limit (`ulimit -n`), and whether it restarted;"
        " at how a client sizes its pools. A server that does not end its connections heeds neither"
        " `Connection: close` nor the end of what its client sends.",
    ),
    "censored": Explanation(
        "A request that never ended is slower than any that did; leaving it out hides the worst.",
        "Raise --timeout so that what is open can end; if requests were never sent, use more"
        " --connections or a lower --rate.",
    ),
    "steady-state": Explanation(
        "A figure of a run that still changes depends on when one looks.",
        "Use a longer --warmup; if it still changes, look at the server's memory and the machine.",
    ),
    "server-idle": Explanation(
        "A server with time to spare was not at its limit: its most is more than this.",
        "Use more --connections or --pipeline, or look at what the server waits for.",
    ),
    "hiccup": Explanation(
        "While the generator stood still it neither sent nor looked at the clock.",
        "Look at what stopped it: a suspended process or machine, swapping, or too few CPUs.",
    ),
    "noise": Explanation(
        "What else ran on the machine took time that engine or server may have needed.",
        "End other programs, or measure on a quiet machine; `trueload doctor` looks at the load.",
    ),
    "same-host": Explanation(
        "On one machine without spare CPU time, generator and server slow each other down.",
        "Pin them apart: `taskset -c 0` for the server and --cpus 1 here, or use two machines.",
    ),
    "quantile-width": Explanation(
        "A percentile of few requests lies anywhere in a wide interval.",
        "Use a longer --duration, or claim a lower percentile.",
    ),
    "ledger": Explanation(
        "Each message of a broadcast must reach each receiver exactly once.",
        "Look at how the server keeps its receivers and their queues.",
    ),
    "both-ends": Explanation(
        "What a client says it did must be what its server saw.",
        "Look at how the client counts, and whether it tries again unseen.",
    ),
    "host-bias": Explanation(
        "Hosts that put the same load on the same server must see the same server.",
        "Look at what else that host does, at its CPUs and at its way to the server; leave it out"
        " and compare.",
    ),
    "clocks": Explanation(
        "A time between two hosts is only as good as the comparison of their clocks.",
        "Look for a shorter way from the front to its hosts (start it inside the lab), or use one"
        " host.",
    ),
    "audit": Explanation(
        "A record whose own counts and percentiles disagree proves that something is broken.",
        "If the engine was killed, repeat; otherwise report it as a bug with the record.",
    ),
}
