"""The console's stories by the clock: their promises of seconds and of tens of thousands, each a figure with its bound.

Server, browser and data are whole, so each takes up to two minutes; what else is true of the stories is tested in
`tests.browser`, with a dozen orders and virtual time.
"""
