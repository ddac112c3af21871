-- SNS Publish in the query protocol, as boto3 sends it. Arguments: topic ARN, bytes of a message.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "call.lua")

function init(arguments)
  local topic = arguments[1]:gsub(":", "%%3A")
  speak("application/x-www-form-urlencoded; charset=utf-8", "sns")
  wrk.body = string.format(
    "Action=Publish&Version=2010-03-31&TopicArn=%s&Message=%s", topic, string.rep("m", tonumber(arguments[2]))
  )
end
