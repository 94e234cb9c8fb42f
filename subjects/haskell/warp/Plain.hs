-- | A room without channels. The thread of the sender sends a broadcast to one client after the other, and waits for
-- a slow one.
module Plain (newRoom) where

import Control.Exception (bracket)
import Data.IORef
import qualified Data.IntMap.Strict as IntMap
import qualified Network.WebSockets as WebSockets
import Room

newRoom :: IO Room
newRoom = do
  clients <- newIORef (0, IntMap.empty)
  pure . Room $ \connection action -> do
    let enter = atomicModifyIORef' clients $ \(number, there) ->
          ((number + 1, IntMap.insert number connection there), number)
        leave number = atomicModifyIORef' clients $ \(next, there) -> ((next, IntMap.delete number there), ())
        place =
          Place
            { reply = WebSockets.sendTextData connection,
              toEverybody = \text -> do
                (_, there) <- readIORef clients
                length . filter id <$> traverse (sent text) (IntMap.elems there)
            }
    bracket enter leave (const (action place))
  where
    -- No need to remove a client that is gone: its own thread does so.
    sent text connection = ifGone False (True <$ WebSockets.sendTextData connection text)
