"""Promises that several implementations keep: one suite each, run on all of them."""
