-- Prints what wrk has measured as one line of JSON.
done = function(summary, latency, requests)
  local at = function(part) return latency:percentile(part) / 1000 end
  io.write(string.format(
    '{"complete": %d, "rate": %.1f, "p90_ms": %.3f, "p99_ms": %.3f, "p999_ms": %.3f, "max_ms": %.3f}\n',
    summary.requests, summary.requests / summary.duration * 1e6, at(90), at(99), at(99.9), latency.max / 1000))
end
