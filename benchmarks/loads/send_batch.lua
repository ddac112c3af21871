-- SendMessageBatch of ten; what counts is messages. Arguments: queue URL, bytes of a body.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "call.lua")

messages_per_request = 10

function init(arguments)
  local body = string.rep("m", tonumber(arguments[2]))
  local entries = {}
  for number = 1, messages_per_request do
    entries[number] = string.format('{"Id":"entry-%d","MessageBody":"%s"}', number, body)
  end
  speak_sqs("SendMessageBatch")
  wrk.body = string.format('{"QueueUrl":"%s","Entries":[%s]}', arguments[1], table.concat(entries, ","))
end
