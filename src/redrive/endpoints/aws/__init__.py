"""Functions and delivery streams of other servers, called as AWS has them called."""
