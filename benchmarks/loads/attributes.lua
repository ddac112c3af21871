-- GetQueueAttributes of all attributes. Argument: queue URL.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "call.lua")

function init(arguments)
  speak_sqs("GetQueueAttributes")
  wrk.body = string.format('{"QueueUrl":"%s","AttributeNames":["All"]}', arguments[1])
end
