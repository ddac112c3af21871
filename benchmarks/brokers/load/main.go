// Command load puts the same durable load on different brokers: callers that have one call under way each.
//
//	load -kind sqs|rabbit|nats|beanstalk|pg -address A -queue Q -mode send|life|drain -batch 1 -callers 32 -seconds 3
//
// A life is a message sent, received and deleted. It prints one line of JSON, and ends with its standard input. With -ledger the numbers of the messages
// that were acknowledged (or, by drain, received) are written to a file, and a caller ends at its first error.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

const bodyBytes = 200

// errEmpty says that there was nothing to receive.
var errEmpty = errors.New("empty")

// caller is one connection to a broker.
type caller interface {
	// send returns when every message is on disk.
	send(bodies []string) error
	// take receives and deletes up to so many, or returns errEmpty after a second at most.
	take(most int) ([]string, error)
}

type dial func(address, queue string, batch int) (caller, error)

var kinds = map[string]dial{"sqs": dialSqs, "rabbit": dialRabbit, "nats": dialNats, "beanstalk": dialBeanstalk, "pg": dialPostgres}

type report struct {
	Messages   int     `json:"messages"`
	Seconds    float64 `json:"seconds"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Errors     int     `json:"errors"`
	FirstError string  `json:"first_error"`
	latencies  []float64
	numbers    []string
}

type options struct {
	mode    string
	batch   int
	until   time.Time
	noting  bool
	started time.Time
}

func main() {
	kind := flag.String("kind", "sqs", "")
	address := flag.String("address", "", "")
	queue := flag.String("queue", "load", "")
	mode := flag.String("mode", "send", "")
	batch := flag.Int("batch", 1, "")
	callers := flag.Int("callers", 32, "")
	seconds := flag.Float64("seconds", 3, "")
	ledger := flag.String("ledger", "", "")
	flag.Parse()
	all := make([]caller, *callers)
	for i := range all {
		var err error
		if all[i], err = kinds[*kind](*address, *queue, *batch); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	began := time.Now()
	set := options{*mode, *batch, began.Add(time.Duration(*seconds * float64(time.Second))), *ledger != "", began}
	whole := run(all, set)
	whole.Seconds = time.Since(began).Seconds()
	if *ledger != "" {
		if err := write(*ledger, whole.numbers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(whole)
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever reads has looked at what the broker has for each connection
}

func run(all []caller, set options) *report {
	whole := &report{}
	var lock sync.Mutex
	var group sync.WaitGroup
	for number, each := range all {
		group.Add(1)
		go func() {
			defer group.Done()
			own := callOften(each, number, set)
			lock.Lock()
			defer lock.Unlock()
			whole.Messages += own.Messages
			whole.Errors += own.Errors
			whole.latencies = append(whole.latencies, own.latencies...)
			whole.numbers = append(whole.numbers, own.numbers...)
			if whole.FirstError == "" {
				whole.FirstError = own.FirstError
			}
		}()
	}
	group.Wait()
	sort.Float64s(whole.latencies)
	if count := len(whole.latencies); count > 0 {
		whole.P50, whole.P99 = whole.latencies[count/2], whole.latencies[count*99/100]
	}
	return whole
}

func callOften(each caller, number int, set options) *report {
	own := &report{}
	for turn := 0; set.mode == "drain" || time.Now().Before(set.until); turn++ {
		began := time.Now()
		bodies, err := once(each, fmt.Sprintf("%d.%d.%d", set.started.UnixNano(), number, turn), set)
		if set.mode == "drain" && errors.Is(err, errEmpty) {
			break
		}
		if err != nil {
			own.Errors++
			own.FirstError = err.Error()
			if set.noting || own.Errors > 50 {
				break
			}
			continue
		}
		own.Messages += len(bodies)
		own.latencies = append(own.latencies, time.Since(began).Seconds()*1000)
		if set.noting {
			for _, body := range bodies {
				own.numbers = append(own.numbers, strings.TrimRight(body, " "))
			}
		}
	}
	return own
}

// once makes one call, or one life of as many messages as a batch has; the messages that it was about.
func once(each caller, name string, set options) ([]string, error) {
	if set.mode == "drain" {
		return each.take(set.batch)
	}
	bodies := make([]string, set.batch)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("%-*s", bodyBytes, fmt.Sprintf("%s.%d", name, i))
	}
	if err := each.send(bodies); err != nil || set.mode == "send" {
		return bodies, err
	}
	var lives []string
	for len(lives) < set.batch && time.Now().Before(set.until.Add(time.Second)) {
		some, err := each.take(set.batch - len(lives))
		if err != nil && !errors.Is(err, errEmpty) {
			return nil, err
		}
		lives = append(lives, some...)
	}
	return lives, nil
}

func write(path string, numbers []string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text := bufio.NewWriter(file)
	for _, number := range numbers {
		fmt.Fprintln(text, number)
	}
	return text.Flush()
}
