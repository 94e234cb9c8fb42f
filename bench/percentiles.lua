-- Prints what wrk's own summary leaves out, in microseconds.
done = function(summary, latency, requests)
  local parts = {50, 90, 99, 99.9}
  for _, part in ipairs(parts) do
    io.write(string.format("percentile %g %d\n", part, latency:percentile(part)))
  end
  io.write(string.format("percentile 100 %d\n", latency.max))
end
