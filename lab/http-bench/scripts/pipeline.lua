-- Sends N requests in one write (wrk ... -s pipeline.lua URL -- N); wrk counts every answer.
local batch

init = function(args)
  local depth = tonumber(args[1]) or 16
  local requests = {}
  for i = 1, depth do
    requests[i] = wrk.format("GET")
  end
  batch = table.concat(requests)
end

request = function()
  return batch
end
