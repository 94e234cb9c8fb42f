-- | A room of channels: a broadcast is written once, into a channel of which each client has its own reading end, and a
-- thread for each client sends on what comes. Nobody waits for another.
module Channels (newRoom) where

import Control.Concurrent.Async (race_)
import Control.Concurrent.STM
import Control.Exception (bracket)
import Control.Monad (forever)
import qualified Network.WebSockets as WebSockets
import Room

newRoom :: IO Room
newRoom = do
  everybody <- newBroadcastTChanIO
  count <- newTVarIO 0
  pure . Room $ \connection action -> do
    replies <- newTQueueIO
    -- In one step with the count, so that the two never disagree.
    let enter = atomically $ modifyTVar' count (+ 1) >> dupTChan everybody
        leave _ = atomically $ modifyTVar' count (subtract 1)
        place =
          Place
            { reply = atomically . writeTQueue replies,
              toEverybody = \text -> atomically $ writeTChan everybody text >> readTVar count
            }
    bracket enter leave $ \mine ->
      -- Broadcasts first: a receipt comes behind its broadcast.
      let next = atomically $ readTChan mine `orElse` readTQueue replies
       in race_ (forever $ next >>= WebSockets.sendTextData connection) (action place)
