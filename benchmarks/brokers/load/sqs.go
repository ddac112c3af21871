package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

const authorization = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0"

type sqs struct {
	client  *http.Client
	address string
	url     string
}

type message struct {
	Body, ReceiptHandle string
}

func dialSqs(address, queue string, _ int) (caller, error) {
	each := &sqs{&http.Client{Transport: &http.Transport{}}, address, ""}
	var made struct{ QueueUrl string }
	err := each.call("CreateQueue", map[string]any{"QueueName": queue}, &made)
	each.url = made.QueueUrl
	return each, err
}

func (each *sqs) call(operation string, parameters map[string]any, answer any) error {
	body, err := json.Marshal(parameters)
	if err != nil {
		return err
	}
	request, err := http.NewRequest("POST", each.address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	request.Header.Set("Authorization", authorization)
	response, err := each.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s", response.StatusCode, said)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}

func (each *sqs) send(bodies []string) error {
	if len(bodies) == 1 {
		return each.call("SendMessage", map[string]any{"QueueUrl": each.url, "MessageBody": bodies[0]}, nil)
	}
	entries := make([]map[string]string, len(bodies))
	for i, body := range bodies {
		entries[i] = map[string]string{"Id": strconv.Itoa(i), "MessageBody": body}
	}
	var answer struct{ Failed []any }
	err := each.call("SendMessageBatch", map[string]any{"QueueUrl": each.url, "Entries": entries}, &answer)
	if err == nil && len(answer.Failed) > 0 {
		err = fmt.Errorf("refused: %v", answer.Failed)
	}
	return err
}

func (each *sqs) take(most int) ([]string, error) {
	var answer struct{ Messages []message }
	wish := map[string]any{"QueueUrl": each.url, "WaitTimeSeconds": 1, "MaxNumberOfMessages": most}
	if err := each.call("ReceiveMessage", wish, &answer); err != nil {
		return nil, err
	}
	if len(answer.Messages) == 0 {
		return nil, errEmpty
	}
	bodies := make([]string, len(answer.Messages))
	for i, each := range answer.Messages {
		bodies[i] = each.Body
	}
	return bodies, each.remove(answer.Messages)
}

func (each *sqs) remove(messages []message) error {
	if len(messages) == 1 {
		return each.call("DeleteMessage", map[string]any{"QueueUrl": each.url, "ReceiptHandle": messages[0].ReceiptHandle}, nil)
	}
	entries := make([]map[string]string, len(messages))
	for i, message := range messages {
		entries[i] = map[string]string{"Id": strconv.Itoa(i), "ReceiptHandle": message.ReceiptHandle}
	}
	var answer struct{ Failed []any }
	err := each.call("DeleteMessageBatch", map[string]any{"QueueUrl": each.url, "Entries": entries}, &answer)
	if err == nil && len(answer.Failed) > 0 {
		err = fmt.Errorf("refused: %v", answer.Failed)
	}
	return err
}
