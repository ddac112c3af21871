"""The store of several nodes: stateless Redrive processes on one PostgreSQL or Citus database."""
