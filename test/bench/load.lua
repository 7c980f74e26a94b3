-- What wrk sends. Arguments: kind (open or read), secret, file of the body of an open, file of warrant ids, seed.
local ids = {}

function init(args)
  kind = args[1]
  wrk.headers["Authorization"] = "Bearer " .. args[2]
  wrk.headers["Content-Type"] = "application/json"
  body = io.open(args[3]):read("*a")
  if kind == "read" then
    for line in io.lines(args[4]) do ids[#ids + 1] = line end
  end
  math.randomseed(tonumber(args[5]))
end

-- As random as a UUID: keys that rise would be cheaper to store.
local function key()
  local parts = {}
  for part = 1, 4 do parts[part] = string.format("%08x", math.random(0, 2147483647)) end
  return table.concat(parts, "-")
end

function request()
  if kind == "read" then return wrk.format("GET", "/v1/warrants/" .. ids[math.random(#ids)]) end
  wrk.headers["Idempotency-Key"] = key()
  return wrk.format("POST", "/v1/warrants", nil, body)
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %d %d %d %d %d\n", summary.requests, summary.duration, failed,
    latency:percentile(50), latency:percentile(99)))
end
