"""Tests of authorization: keys, principals and policies."""
