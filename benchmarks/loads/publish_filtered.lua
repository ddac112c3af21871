-- SNS Publish with an attribute that filters look at. Arguments: topic ARN, bytes of a message.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "call.lua")

function init(arguments)
  local topic = arguments[1]:gsub(":", "%%3A")
  local entry = "MessageAttributes.entry.1."
  speak("application/x-www-form-urlencoded; charset=utf-8", "sns")
  wrk.body = string.format(
    "Action=Publish&Version=2010-03-31&TopicArn=%s&%sName=wish&%sValue.DataType=String&%sValue.StringValue=wanted&Message=%s",
    topic, entry, entry, entry, string.rep("m", tonumber(arguments[2]))
  )
end
