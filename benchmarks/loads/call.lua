-- What every load needs: calls of Amazon's JSON protocol, and the result as one line of name=value.
-- A load says in `messages_per_request` what one request is worth, or counts for itself in `finished`.

messages_per_request = 1
finished = nil

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

-- Headers that an SDK sends too, so that the server has as much to read.
function speak(content_type, service)
  wrk.method = "POST"
  wrk.path = "/"
  wrk.headers["Content-Type"] = content_type
  wrk.headers["X-Amz-Date"] = "20260101T000000Z"
  wrk.headers["Authorization"] = "AWS4-HMAC-SHA256 Credential=000000000000/20260101/us-east-1/" .. service
    .. "/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" .. string.rep("0", 64)
end

function speak_sqs(operation)
  speak("application/x-amz-json-1.0", "sqs")
  wrk.headers["X-Amz-Target"] = "AmazonSQS." .. operation
end

function done(summary, latency, requests)
  local count = summary.requests * messages_per_request
  if threads[1]:get("finished") then
    count = 0
    for _, thread in ipairs(threads) do count = count + thread:get("finished") end
  end
  local errors = summary.errors
  io.write(string.format(
    "RESULT messages=%d requests=%d seconds=%.6f p50_us=%.1f p99_us=%.1f refused=%d broken=%d\n",
    count, summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
