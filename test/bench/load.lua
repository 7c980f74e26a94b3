-- What wrk sends. Arguments: secret, kind (open, verify or read), file of warrant ids, source URL, run's name.
local count = 0
local ids = {}

function init(args)
  secret, kind, file, source, run = args[1], args[2], args[3], args[4], args[5]
  wrk.headers["Authorization"] = "Bearer " .. secret
  wrk.headers["Content-Type"] = "application/json"
  if kind ~= "open" then
    for line in io.lines(file) do ids[#ids + 1] = line end
  end
end

function request()
  count = count + 1
  if kind == "read" then return wrk.format("GET", "/v1/warrants/" .. ids[count % #ids + 1]) end
  wrk.headers["Idempotency-Key"] = run .. "-" .. kind .. "-" .. count
  if kind == "verify" then
    local id = ids[count] or "wrt_none_left"
    return wrk.format("POST", "/v1/warrants/" .. id .. "/verify", nil, '{"source_url":"' .. source .. '"}')
  end
  return wrk.format("POST", "/v1/warrants", nil,
    '{"amount":"100","payee":"acct_seller_1","deadline":"2029-01-01T00:00:00Z","spec":{"clauses":[' ..
    '{"kind":"http.status","equals":200},{"kind":"json.jsonpath","path":"$.ok","equals":true}]}}')
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %d %d %d %d %d\n", summary.requests, summary.duration, failed,
    latency:percentile(50), latency:percentile(99)))
end
