package main

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

const natsWait = 10 * time.Second

// natsStream is a work queue of JetStream on files. The last of several acks is answered; the connection keeps their order.
type natsStream struct {
	stream       nats.JetStreamContext
	queue        string
	subscription *nats.Subscription
}

func dialNats(address, queue string, _ int) (caller, error) {
	connection, err := nats.Connect(address)
	if err != nil {
		return nil, err
	}
	stream, err := connection.JetStream(nats.MaxWait(natsWait))
	if err != nil {
		return nil, err
	}
	wish := &nats.StreamConfig{Name: queue, Subjects: []string{queue}, Storage: nats.FileStorage, Retention: nats.WorkQueuePolicy}
	if _, err = stream.AddStream(wish); err != nil {
		return nil, err
	}
	return &natsStream{stream, queue, nil}, nil
}

func (each *natsStream) send(bodies []string) error {
	if len(bodies) == 1 {
		_, err := each.stream.Publish(each.queue, []byte(bodies[0]))
		return err
	}
	acks := make([]nats.PubAckFuture, len(bodies))
	for i, body := range bodies {
		var err error
		if acks[i], err = each.stream.PublishAsync(each.queue, []byte(body)); err != nil {
			return err
		}
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-time.After(natsWait):
			return errors.New("not acknowledged")
		}
	}
	return nil
}

func (each *natsStream) take(most int) ([]string, error) {
	if each.subscription == nil {
		var err error
		if each.subscription, err = each.stream.PullSubscribe(each.queue, "workers"); err != nil {
			return nil, err
		}
	}
	messages, err := each.subscription.Fetch(most, nats.MaxWait(time.Second))
	if errors.Is(err, nats.ErrTimeout) {
		return nil, errEmpty
	}
	if err != nil {
		return nil, err
	}
	bodies := make([]string, len(messages))
	for i, message := range messages {
		bodies[i] = string(message.Data)
		if i < len(messages)-1 {
			err = message.Ack()
		} else {
			err = message.AckSync()
		}
		if err != nil {
			return nil, err
		}
	}
	return bodies, nil
}
