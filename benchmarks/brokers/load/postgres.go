package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// postgres is a table in pgmq's shape: inserted into, claimed by skip locked and a moment, deleted from.
type postgres struct {
	connection            *pgx.Conn
	insert, claim, remove string
}

func dialPostgres(address, queue string, _ int) (caller, error) {
	background := context.Background()
	connection, err := pgx.Connect(background, address)
	if err != nil {
		return nil, err
	}
	shape := "create table if not exists %[1]s(msg_id bigint generated always as identity primary key, read_ct int default 0," +
		" enqueued_at timestamptz default now(), vt timestamptz default now(), message text);" +
		"create index if not exists %[1]s_vt on %[1]s(vt)"
	if _, err = connection.Exec(background, "select pg_advisory_lock(1)"); err == nil {
		_, err = connection.Exec(background, fmt.Sprintf(shape, queue))
	}
	if err != nil {
		return nil, err
	}
	_, err = connection.Exec(background, "select pg_advisory_unlock(1)")
	claim := "with c as (select msg_id from %[1]s where vt <= clock_timestamp() order by msg_id limit $1 for update skip locked)" +
		" update %[1]s q set vt = clock_timestamp() + interval '30 s', read_ct = read_ct + 1 from c" +
		" where q.msg_id = c.msg_id returning q.msg_id, q.message"
	return &postgres{
		connection,
		fmt.Sprintf("insert into %s(message) select unnest($1::text[])", queue),
		fmt.Sprintf(claim, queue),
		fmt.Sprintf("delete from %s where msg_id = any($1)", queue),
	}, err
}

func (each *postgres) send(bodies []string) error {
	_, err := each.connection.Exec(context.Background(), each.insert, bodies)
	return err
}

func (each *postgres) take(most int) ([]string, error) {
	rows, err := each.connection.Query(context.Background(), each.claim, most)
	if err != nil {
		return nil, err
	}
	var ids []int64
	var bodies []string
	var id int64
	var body string
	if _, err = pgx.ForEachRow(rows, []any{&id, &body}, func() error {
		ids, bodies = append(ids, id), append(bodies, body)
		return nil
	}); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errEmpty
	}
	_, err = each.connection.Exec(context.Background(), each.remove, ids)
	return bodies, err
}
