"""Seeded clusters: nodes on one store, in virtual time, with everything going wrong that can; then all must be well.

Three engines, as they are, share one store, as it is; between them a network that is slow, breaks, and loses answers
after the work was done. Nodes die and come back, their clocks disagree, workers take longer than their claims hold,
endpoints fail. Then the faults stop, and everything has to come to rest. What is watched is in `rules.py`.

    python -m tests.simulation --seed 7          one run, with everything that happened
    python -m tests.simulation --seeds 10000     many, and how fast

    options.py    what may go wrong in a run, drawn from its seed; subscribers.py who wants what, and how
    run.py        a run from its beginning to its end
    cluster.py    nodes on one store; trouble.py is what happens to them first, rest.py how it has to end
    node.py       one engine that can die
    wire.py       between an engine and the store; database.py is the other end, news.py what nodes hear of each other
    clients.py    who sends, publishes, receives, redrives and purges
    administrators.py  who makes, changes and deletes topics, subscriptions and queues; documents.py holds what is
                  configured against itself
    outside.py    the endpoints that deliveries are pushed to; dialects.py in whose words
    rules.py      what must hold
    books.py      ... of what the store does, delivery by delivery (entry.py); what it remembers (memories.py), what
                  is pushed (backlogs.py), and move tasks (tasks.py)
    ledger.py     ... of what clients were told
    trace.py      what happened, for a reader
    world.py      the store and the engines as they are; mutants.py stores, and spoilt.py engines, with one thing
                  wrong, to prove that it would be noticed; postgres.py the other store, for a few seeds
"""
