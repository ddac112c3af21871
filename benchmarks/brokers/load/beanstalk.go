package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// beanstalk sends the commands of a batch one behind the other, and then reads the answers.
type beanstalk struct {
	connection net.Conn
	answers    *bufio.Reader
}

func dialBeanstalk(address, queue string, _ int) (caller, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	each := &beanstalk{connection, bufio.NewReader(connection)}
	for _, command := range []string{"use " + queue, "watch " + queue, "ignore default"} {
		fmt.Fprintf(connection, "%s\r\n", command)
		if _, err = each.answers.ReadString('\n'); err != nil {
			return nil, err
		}
	}
	return each, nil
}

func (each *beanstalk) say(commands []string) error {
	_, err := io.WriteString(each.connection, strings.Join(commands, ""))
	return err
}

func (each *beanstalk) expect(count int, word string) error {
	for range count {
		line, err := each.answers.ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, word) {
			return fmt.Errorf("beanstalkd: %s", line)
		}
	}
	return nil
}

func (each *beanstalk) send(bodies []string) error {
	puts := make([]string, len(bodies))
	for i, body := range bodies {
		puts[i] = fmt.Sprintf("put 0 0 60 %d\r\n%s\r\n", len(body), body)
	}
	if err := each.say(puts); err != nil {
		return err
	}
	return each.expect(len(bodies), "INSERTED")
}

func (each *beanstalk) take(most int) ([]string, error) {
	reserves := make([]string, most)
	for i := range reserves {
		reserves[i] = "reserve-with-timeout 1\r\n"
	}
	if err := each.say(reserves); err != nil {
		return nil, err
	}
	var bodies, deletes []string
	for range most {
		job, body, err := each.reserved()
		if err != nil {
			return nil, err
		}
		if job != "" {
			bodies, deletes = append(bodies, body), append(deletes, "delete "+job+"\r\n")
		}
	}
	if len(bodies) == 0 {
		return nil, errEmpty
	}
	if err := each.say(deletes); err != nil {
		return nil, err
	}
	return bodies, each.expect(len(deletes), "DELETED")
}

// reserved reads one answer; the id of the job is empty where there was none.
func (each *beanstalk) reserved() (string, string, error) {
	line, err := each.answers.ReadString('\n')
	if err != nil || strings.HasPrefix(line, "TIMED_OUT") {
		return "", "", err
	}
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "RESERVED" {
		return "", "", fmt.Errorf("beanstalkd: %s", line)
	}
	length, err := strconv.Atoi(fields[2])
	if err != nil {
		return "", "", err
	}
	body := make([]byte, length+2)
	_, err = io.ReadFull(each.answers, body)
	return fields[1], string(body[:length]), err
}
