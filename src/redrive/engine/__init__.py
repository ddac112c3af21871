"""The verbs, in the order a message lives them: publish, receive or dispatch, settle, redrive, sweep."""
