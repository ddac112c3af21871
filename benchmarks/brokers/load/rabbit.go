package main

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// rabbit has a quorum queue, publisher confirms, and acks, which have no answer. One message is got; several come by a
// consumer with as much prefetch, and are acked together.
type rabbit struct {
	channel  *amqp.Channel
	queue    string
	incoming <-chan amqp.Delivery
}

func dialRabbit(address, queue string, batch int) (caller, error) {
	connection, err := amqp.Dial(address)
	if err != nil {
		return nil, err
	}
	channel, err := connection.Channel()
	if err != nil {
		return nil, err
	}
	if err = channel.Confirm(false); err != nil {
		return nil, err
	}
	quorum := amqp.Table{"x-queue-type": "quorum"}
	if _, err = channel.QueueDeclare(queue, true, false, false, false, quorum); err != nil {
		return nil, err
	}
	each := &rabbit{channel, queue, nil}
	if batch > 1 {
		err = channel.Qos(batch, 0, false)
	}
	return each, err
}

func (each *rabbit) send(bodies []string) error {
	confirms := make([]*amqp.DeferredConfirmation, len(bodies))
	for i, body := range bodies {
		var err error
		publishing := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)}
		confirms[i], err = each.channel.PublishWithDeferredConfirmWithContext(context.Background(), "", each.queue, true, false, publishing)
		if err != nil {
			return err
		}
	}
	for _, confirm := range confirms {
		if !confirm.Wait() {
			return errors.New("not confirmed")
		}
	}
	return nil
}

func (each *rabbit) take(most int) ([]string, error) {
	if most == 1 && each.incoming == nil {
		delivery, ok, err := each.channel.Get(each.queue, false)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errEmpty
		}
		return []string{string(delivery.Body)}, delivery.Ack(false)
	}
	if each.incoming == nil {
		var err error
		if each.incoming, err = each.channel.Consume(each.queue, "", false, false, false, false, nil); err != nil {
			return nil, err
		}
	}
	return each.consume(most)
}

func (each *rabbit) consume(most int) ([]string, error) {
	var bodies []string
	var last amqp.Delivery
	timeout := time.After(time.Second)
	for len(bodies) < most {
		select {
		case delivery, ok := <-each.incoming:
			if !ok {
				return nil, amqp.ErrClosed
			}
			bodies, last = append(bodies, string(delivery.Body)), delivery
			continue
		case <-timeout:
		}
		break
	}
	if len(bodies) == 0 {
		return nil, errEmpty
	}
	return bodies, last.Ack(true)
}
