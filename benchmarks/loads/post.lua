-- A post to a method of an API, as a client without credentials sends it. Arguments: path, bytes of a body.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "call.lua")

function init(arguments)
  wrk.method = "POST"
  wrk.path = arguments[1]
  wrk.headers["Content-Type"] = "application/json"
  wrk.body = string.format('{"note":"%s"}', string.rep("m", tonumber(arguments[2]) - 11))
end
