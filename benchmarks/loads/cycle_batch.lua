-- The whole lives of messages, ten by ten: sent, received and deleted by one call each. What counts is lives.
-- Arguments: queue URL, bytes of a body, message groups (0: a standard queue).

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "call.lua")

finished = 0

local BATCH = 10
local queue, body, groups, receive_call
local run, number, owed, deletes = os.time(), 0, 0, {}

local function call(operation, fields)
  wrk.headers["X-Amz-Target"] = "AmazonSQS." .. operation
  return wrk.format(nil, nil, nil, string.format('{"QueueUrl":"%s",%s}', queue, fields))
end

local function entry()
  number = number + 1
  local fields = string.format('"Id":"entry-%d","MessageBody":"%s"', number, body)
  if groups > 0 then
    fields = string.format(
      '%s,"MessageGroupId":"group-%d","MessageDeduplicationId":"%d-%d"', fields, number % groups, run, number
    )
  end
  return "{" .. fields .. "}"
end

local function send()
  local entries = {}
  for place = 1, BATCH do entries[place] = entry() end
  return call("SendMessageBatch", '"Entries":[' .. table.concat(entries, ",") .. "]")
end

function init(arguments)
  queue, body, groups = arguments[1], string.rep("m", tonumber(arguments[2])), tonumber(arguments[3])
  speak_sqs("ReceiveMessage")
  receive_call = call("ReceiveMessage", string.format('"MaxNumberOfMessages":%d,"VisibilityTimeout":120', BATCH))
end

function request()
  local entries = table.remove(deletes)
  if entries then
    finished = finished + #entries
    return call("DeleteMessageBatch", '"Entries":[' .. table.concat(entries, ",") .. "]")
  end
  if owed >= BATCH then
    owed = owed - BATCH
    return receive_call
  end
  return send()
end

function response(status, headers, answer)
  local entries = {}
  for handle in answer:gmatch('"ReceiptHandle"%s*:%s*"([^"]+)"') do
    entries[#entries + 1] = string.format('{"Id":"%d","ReceiptHandle":"%s"}', #entries, handle)
  end
  if #entries > 0 then deletes[#deletes + 1] = entries end
  local _, sent = answer:gsub("MD5OfMessageBody", "")
  owed = owed + sent
end
