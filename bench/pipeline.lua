-- Sends as many requests at once as the first argument says; wrk counts each answer.

init = function(args)
   local requests = {}
   for i = 1, tonumber(args[1]) do
      requests[i] = wrk.format()
   end
   batch = table.concat(requests)
end

request = function()
   return batch
end
