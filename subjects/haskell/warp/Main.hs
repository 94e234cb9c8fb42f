{-# LANGUAGE OverloadedStrings #-}

-- | WebSocket echo and broadcast on Warp: @subject HOST PORT (channels|plain)@.
--
-- This module answers the messages of a client. A 'Room' delivers broadcasts to all clients; there are two kinds of
-- it.
module Main (main) where

import qualified Channels
import Control.Exception (bracket)
import Control.Monad (forever)
import qualified Data.ByteString.Lazy as Lazy
import Data.String (fromString)
import Message
import Network.HTTP.Types (hContentType, notFound404)
import qualified Network.Socket as Socket
import Network.Wai (Application, rawPathInfo, responseLBS)
import Network.Wai.Handler.Warp (defaultSettings, runSettingsSocket, setHost, setTimeout)
import Network.Wai.Handler.WebSockets (websocketsOr)
import qualified Network.WebSockets as WebSockets
import qualified Plain
import Room
import System.Environment (getArgs)
import System.Exit (die)

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    [host, port, "channels"] -> Channels.newRoom >>= serve host port
    [host, port, "plain"] -> Plain.newRoom >>= serve host port
    _ -> die "usage: subject HOST PORT (channels|plain)"

serve :: String -> String -> Room -> IO ()
serve host port room =
  bracket (listening host port) Socket.close $ \socket ->
    runSettingsSocket settings socket (application room)
  where
    settings = setHost (fromString host) (setTimeout idleSeconds defaultSettings)
    idleSeconds = 24 * 3600

-- | Creates the listening socket. Connections inherit its options.
listening :: String -> String -> IO Socket.Socket
listening host port = do
  let hints = Socket.defaultHints {Socket.addrSocketType = Socket.Stream, Socket.addrFlags = [Socket.AI_PASSIVE]}
  address <- head <$> Socket.getAddrInfo (Just hints) (Just host) (Just port)
  socket <- Socket.openSocket address
  Socket.setSocketOption socket Socket.ReuseAddr 1
  -- If a client reads nothing for so many milliseconds, the kernel ends its connection.
  Socket.setSocketOption socket Socket.UserTimeout (10 * 1000)
  Socket.bind socket (Socket.addrAddress address)
  Socket.listen socket 4096
  pure socket

application :: Room -> Application
application room request respond
  | rawPathInfo request == "/ws" = websocketsOr options (client room) notFound request respond
  | otherwise = notFound request respond
  where
    notFound _ answer = answer (responseLBS notFound404 [(hContentType, "text/plain")] "not found\n")
    options =
      WebSockets.defaultConnectionOptions
        { WebSockets.connectionFramePayloadSizeLimit = limit,
          WebSockets.connectionMessageDataSizeLimit = limit
        }
    limit = WebSockets.SizeLimit (16 * 1024 * 1024)

-- | Serves one client until it is gone.
client :: Room -> WebSockets.ServerApp
client room pending = do
  connection <- WebSockets.acceptRequest pending
  ifGone () . inRoom room connection $ \place ->
    forever $ WebSockets.receiveData connection >>= hear place

-- | Answers a message. Ignores a text that is not a valid message.
hear :: Place -> Lazy.ByteString -> IO ()
hear place text = case parse text of
  Just (Echo payload) -> reply place (echo payload)
  Just (Broadcast payload) -> do
    count <- toEverybody place (broadcast payload)
    reply place (broadcastResult payload count)
  Nothing -> pure ()
