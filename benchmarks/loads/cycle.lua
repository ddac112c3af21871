-- A message's whole life: sent, received, deleted. What counts is lives.
-- Arguments: queue URL, bytes of a body, message groups (0: a standard queue).
--
-- A receive follows each send that was answered and a delete each message that came, whichever connection is free:
-- the depth of the queue stays as it was, and no receive meets an empty queue.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "call.lua")

finished = 0

local queue, send_call, receive_call, groups
local run, number, owed, handles = os.time(), 0, 0, {}

local function call(operation, body)
  wrk.headers["X-Amz-Target"] = "AmazonSQS." .. operation
  return wrk.format(nil, nil, nil, body)
end

local function send()
  number = number + 1
  if groups == 0 then return call("SendMessage", send_call .. "}") end
  return call("SendMessage", string.format(
    '%s,"MessageGroupId":"group-%d","MessageDeduplicationId":"%d-%d"}', send_call, number % groups, run, number
  ))
end

function init(arguments)
  queue, groups = arguments[1], tonumber(arguments[3])
  local body = string.rep("m", tonumber(arguments[2]))
  speak_sqs("SendMessage")
  send_call = string.format('{"QueueUrl":"%s","MessageBody":"%s"', queue, body)
  receive_call = call(
    "ReceiveMessage", string.format('{"QueueUrl":"%s","MaxNumberOfMessages":1,"VisibilityTimeout":120}', queue)
  )
end

function request()
  local handle = table.remove(handles)
  if handle then
    finished = finished + 1
    return call("DeleteMessage", string.format('{"QueueUrl":"%s","ReceiptHandle":"%s"}', queue, handle))
  end
  if owed > 0 then
    owed = owed - 1
    return receive_call
  end
  return send()
end

function response(status, headers, body)
  local handle = body:match('"ReceiptHandle"%s*:%s*"([^"]+)"')
  if handle then
    handles[#handles + 1] = handle
  elseif body:find("MD5OfMessageBody", 1, true) then
    owed = owed + 1
  end
end
