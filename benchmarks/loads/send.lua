-- SendMessage, one message a request. Arguments: queue URL, bytes of a body, message groups (0: a standard queue).

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "call.lua")

local ordered_call, groups, number

function init(arguments)
  local queue, body = arguments[1], string.rep("m", tonumber(arguments[2]))
  groups = tonumber(arguments[3])
  speak_sqs("SendMessage")
  local call = string.format('{"QueueUrl":"%s","MessageBody":"%s"', queue, body)
  if groups == 0 then
    wrk.body = call .. "}"
    return
  end
  ordered_call, number = call, 0
  local run = os.time()
  function request()
    number = number + 1
    return wrk.format(nil, nil, nil, string.format(
      '%s,"MessageGroupId":"group-%d","MessageDeduplicationId":"%d-%d"}',
      ordered_call, number % groups, run, number
    ))
  end
end
