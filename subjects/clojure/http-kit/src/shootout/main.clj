;; WebSocket echo and broadcast on http-kit, and a plain text: main HOST PORT CPUS.

(ns shootout.main
  (:require [org.httpkit.server :as http]
            [shootout.room :as room])
  (:gen-class))

(set! *warn-on-reflection* true)

(def ^:private message-bytes-max (* 16 1024 1024))
;; So many requests and messages may wait for a worker. http-kit drops what exceeds it.
(def ^:private queue-size (* 256 1024))
;; Brings the plain response to 192 bytes, see subjects/README.md.
(def ^:private pad "..................................................")

(def ^:private greeting
  {:status 200 :headers {"Content-Type" "text/plain" "X-Pad" pad} :body "Hello, World!"})

(def ^:private not-found
  {:status 404 :headers {"Content-Type" "text/plain"} :body "not found"})

(defn- answer [request]
  (case (:uri request)
    "/" greeting
    "/ws" (if (:websocket? request) (room/enter request) not-found)
    not-found))

(defn -main [host port cpus]
  (http/run-server answer
                   {:ip host
                    :port (parse-long port)
                    :thread (parse-long cpus)
                    :allow-virtual? false
                    :queue-size queue-size
                    :max-ws message-bytes-max
                    :legacy-return-value? false}))
