{-# LANGUAGE OverloadedStrings #-}

-- | The messages, encoded as JSON.
module Message (Message (..), parse, echo, broadcast, broadcastResult) where

import Data.Aeson
import Data.Aeson.Encoding (encodingToLazyByteString)
import Data.Aeson.Types (Parser)
import qualified Data.ByteString.Lazy as Lazy
import Data.Text (Text)

data Message = Echo Value | Broadcast Value

instance FromJSON Message where
  parseJSON = withObject "message" $ \fields -> do
    payload <- fields .:? "payload" .!= Null
    kind <- fields .: "type" :: Parser Text
    case kind of
      "echo" -> pure (Echo payload)
      "broadcast" -> pure (Broadcast payload)
      _ -> fail "unknown type"

parse :: Lazy.ByteString -> Maybe Message
parse = decode'

echo, broadcast :: Value -> Lazy.ByteString
echo payload = encodingToLazyByteString . pairs $ "type" .= ("echo" :: Text) <> "payload" .= payload
broadcast payload = encodingToLazyByteString . pairs $ "type" .= ("broadcast" :: Text) <> "payload" .= payload

broadcastResult :: Value -> Int -> Lazy.ByteString
broadcastResult payload count =
  encodingToLazyByteString . pairs $
    "type" .= ("broadcastResult" :: Text) <> "payload" .= payload <> "listenerCount" .= count
