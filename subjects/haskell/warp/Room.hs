-- | The interface of a room: the set of connected clients, and how messages are sent to them.
module Room (Room (..), Place (..), ifGone) where

import Control.Exception (Handler (..), IOException, catches)
import qualified Data.ByteString.Lazy as Lazy
import Network.Wai.Handler.Warp (InvalidRequest)
import qualified Network.WebSockets as WebSockets

-- | Runs the action; the client is in the room as long as it runs.
newtype Room = Room {inRoom :: WebSockets.Connection -> (Place -> IO ()) -> IO ()}

-- | What one client can do in a room.
data Place = Place
  { -- | Sends to this client only, after everything that 'toEverybody' has sent it before.
    reply :: Lazy.ByteString -> IO (),
    -- | Sends to all clients, including this one. Returns the number of clients.
    toEverybody :: Lazy.ByteString -> IO Int
  }

-- | Runs the action. Returns its result, or the given value if the client is gone.
ifGone :: a -> IO a -> IO a
ifGone instead action = action `catches` [Handler ended, Handler failed, Handler reset]
  where
    ended exception = instead <$ pure (exception :: WebSockets.ConnectionException)
    failed exception = instead <$ pure (exception :: IOException)
    -- Warp throws this if a connection breaks while it sends.
    reset exception = instead <$ pure (exception :: InvalidRequest)
