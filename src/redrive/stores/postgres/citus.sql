-- Spreads the tables of one database over the nodes of a Citus cluster. Apply it once, by hand, to a coordinator
-- where Redrive has made its schema and nothing was sent yet:
--
--     psql "$URL" -f citus.sql
--
-- Every statement that touches a delivery names its queue, so a queue's deliveries, and what is remembered beside
-- them, live on one node and the coordinator passes each statement on whole. Documents are few and read everywhere:
-- a copy on each node. Sequences and locks stay with the coordinator, which all Redrive nodes connect to.
SELECT create_distributed_table('deliveries', 'queue_id');
SELECT create_distributed_table('deduplication', 'queue_id', colocate_with => 'deliveries');
SELECT create_distributed_table('claim_attempts', 'queue_id', colocate_with => 'deliveries');
SELECT create_distributed_table('paces', 'queue_id', colocate_with => 'deliveries');
SELECT create_distributed_table('attempts', 'queue_id', colocate_with => 'deliveries');
SELECT create_reference_table('resources');
