"""The console in Debian's Chromium: twelve stories of people who are on call, each held to what must be true of it.

    1   Why are the orders dead, and send the good ones back   test_redriving (five clicks, by keys, without JavaScript)
    2   The endpoint is still broken                           test_redriving (ten and no more)
    3   Two orders have a wrong currency                       test_messages (to the digit; once though the server dies)
    4   I sent a message; did it come?                         test_messages (seen as it arrives)
    5   Where is order 7001?                                   test_messages (found among many; a search stops)
    6   The endpoint is back; do not wait                      test_endpoints
    7   Will our policy survive an afternoon?                  test_schedules
    8   An auditor may look                                    test_auditor
    9   Behind a proxy with TLS, below a path                  test_behind_a_proxy
    10  Without a mouse, with a screen reader, on a telephone  test_everybody, test_redriving (by keys)
    11  Event Grid, tested in a minute                         test_event_grid
    12  The laptop closes, the server is killed                test_redriving (goes on; cancelled)

What stories promise of seconds and of 40,000 orders is measured: `python -m benchmarks stories`, with system time and all
of the orders (1, 2, 4, 6, 7, 11, 12, each also alone by its number); a search of a million dead letters (5) by `search`.
"""
