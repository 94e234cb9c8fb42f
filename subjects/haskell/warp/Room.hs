-- | What all connected clients share, whichever way messages get to them.
module Room (Room (..), Place (..), ifGone) where

import Control.Exception (Handler (..), IOException, catches)
import qualified Data.ByteString.Lazy as Lazy
import Network.Wai.Handler.Warp (InvalidRequest)
import qualified Network.WebSockets as WebSockets

-- | Has the client in it while the action runs.
newtype Room = Room {inRoom :: WebSockets.Connection -> (Place -> IO ()) -> IO ()}

-- | One client's place in it.
data Place = Place
  { -- | To this client alone, behind what 'toEverybody' has sent before.
    reply :: Lazy.ByteString -> IO (),
    -- | To each client, this one too; how many they are.
    toEverybody :: Lazy.ByteString -> IO Int
  }

-- | The action's result, or this one if its client is gone.
ifGone :: a -> IO a -> IO a
ifGone instead action = action `catches` [Handler ended, Handler failed, Handler reset]
  where
    ended exception = instead <$ pure (exception :: WebSockets.ConnectionException)
    failed exception = instead <$ pure (exception :: IOException)
    -- Warp's word for a connection that breaks while it sends.
    reset exception = instead <$ pure (exception :: InvalidRequest)
