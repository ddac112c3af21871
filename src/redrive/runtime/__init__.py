"""The real clock and real chance; nothing outside this package asks the machine for either."""
