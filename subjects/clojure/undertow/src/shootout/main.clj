;; WebSocket echo and broadcast on Undertow: main HOST PORT CPUS. One I/O thread per CPU; nothing blocks.

(ns shootout.main
  (:require [shootout.room :as room])
  (:import (io.undertow Handlers Undertow)
           (io.undertow.server.handlers ResponseCodeHandler)
           (io.undertow.websockets WebSocketConnectionCallback)
           (io.undertow.websockets.core WebSocketChannel)
           (org.xnio Options))
  (:gen-class))

(set! *warn-on-reflection* true)

(def ^:private path "/ws")
(def ^:private backlog 4096)

(def ^:private welcome
  (reify WebSocketConnectionCallback
    (onConnect [_ _ channel]
      (room/enter channel)
      (.resumeReceives ^WebSocketChannel channel))))

(defn -main [^String host port cpus]
  (-> (Undertow/builder)
      (.setIoThreads (parse-long cpus))
      (.setSocketOption Options/BACKLOG (int backlog))
      (.setSocketOption Options/TCP_NODELAY true)
      (.addHttpListener (parse-long port) host)
      (.setHandler (-> (Handlers/path ResponseCodeHandler/HANDLE_404)
                       (.addExactPath path (Handlers/websocket ^WebSocketConnectionCallback welcome))))
      .build
      .start))
