-- Prints the percentiles that wrk itself leaves out, in microseconds.
done = function(summary, latency, requests)
  io.write(string.format("percentiles in us: %d %d %d %d\n",
    latency:percentile(90.0), latency:percentile(99.0), latency:percentile(99.9), latency.max))
end
