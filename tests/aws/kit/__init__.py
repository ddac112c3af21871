"""Parts that all Amazon services share."""
