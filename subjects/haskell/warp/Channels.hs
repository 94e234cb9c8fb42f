-- | A room that uses channels. A broadcast is written once, into a channel that each client has duplicated. Each
-- client has a thread that sends what its channel delivers, so no client waits for another.
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
    -- In one transaction with the count, so that the count always matches the number of channels.
    let enter = atomically $ modifyTVar' count (+ 1) >> dupTChan everybody
        leave _ = atomically $ modifyTVar' count (subtract 1)
        place =
          Place
            { reply = atomically . writeTQueue replies,
              toEverybody = \text -> atomically $ writeTChan everybody text >> readTVar count
            }
    bracket enter leave $ \mine ->
      -- Broadcasts first, so that a receipt is sent after its broadcast.
      let next = atomically $ readTChan mine `orElse` readTQueue replies
       in race_ (forever $ next >>= WebSockets.sendTextData connection) (action place)
