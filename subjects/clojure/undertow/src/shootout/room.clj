;; The connected clients: answers their messages, and sends broadcasts to all of them.

(ns shootout.room
  (:require [clojure.data.json :as json])
  (:import (io.undertow.websockets.core AbstractReceiveListener BufferedTextMessage WebSocketCallback WebSocketChannel
                                        WebSockets)
           (java.nio ByteBuffer)
           (java.nio.charset StandardCharsets)
           (java.util.concurrent.atomic AtomicLong)
           (org.xnio ChannelListener)))

(set! *warn-on-reflection* true)

(def ^:private message-bytes-max (* 16 1024 1024))
;; A client that leaves more than this unread is disconnected, because Undertow queues without a limit.
(def ^:private unread-bytes-max (* 16 1024 1024))

;; The connected clients: a map from the channel to the number of bytes that are queued for it.
(def ^:private clients (atom {}))

(defn- encode ^bytes [message]
  (.getBytes ^String (json/write-str message :escape-unicode false :escape-slash false) StandardCharsets/UTF_8))

(defn- sent
  "Told when the client has taken so many bytes, or never will."
  [^AtomicLong unread-bytes ^long size]
  (reify WebSocketCallback
    (complete [_ _ _] (.addAndGet unread-bytes (- size)))
    (onError [_ _ _ _] (.addAndGet unread-bytes (- size)))))

(defn- send-bytes
  "Whether it was taken: not where the client has left too much unread."
  [^WebSocketChannel channel ^AtomicLong unread-bytes ^bytes text]
  (let [size (alength text)]
    (if (> (.addAndGet unread-bytes size) (long unread-bytes-max))
      (do (.close channel) false)
      (do (WebSockets/sendText (ByteBuffer/wrap text) channel ^WebSocketCallback (sent unread-bytes size)) true))))

(defn- broadcast [payload]
  (let [text (encode {:type "broadcast" :payload payload})]
    (reduce-kv (fn [listeners channel unread-bytes]
                 (if (send-bytes channel unread-bytes text) (inc listeners) listeners))
               0
               @clients)))

(defn- answer [channel unread-bytes text]
  (let [message (json/read-str text)
        payload (get message "payload")
        reply #(send-bytes channel unread-bytes (encode %))]
    (case (get message "type")
      "echo" (reply {:type "echo" :payload payload})
      "broadcast" (reply {:type "broadcastResult" :payload payload :listenerCount (broadcast payload)})
      nil)))

(defn- hear
  "What is no message of ours is ignored."
  [channel unread-bytes text]
  (try
    (answer channel unread-bytes text)
    ;; Invalid JSON, or a number that no double can hold. The StackOverflowError is for too deep nesting.
    (catch Exception _ nil)
    (catch StackOverflowError _ nil)))

(defn- listener [channel unread-bytes]
  (proxy [AbstractReceiveListener] []
    (onFullTextMessage [_ ^BufferedTextMessage message]
      (hear channel unread-bytes (.getData message)))
    (getMaxTextBufferSize [] (long message-bytes-max))))

(defn enter
  "Makes the client hear and be heard, until it is gone."
  [^WebSocketChannel channel]
  (let [unread-bytes (AtomicLong.)]
    (.set (.getReceiveSetter channel) (listener channel unread-bytes))
    (swap! clients assoc channel unread-bytes)
    (.addCloseTask channel (reify ChannelListener
                             (handleEvent [_ _] (swap! clients dissoc channel))))))
